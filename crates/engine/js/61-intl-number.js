// Intl.NumberFormat: decimals, percentages, currencies and units, rounded in decimal notation.

// Decimal sign, group sign, minus, percent, currency, negative currency, accounting currency, and the currency symbols.
const numberTexts = {
  "en-US": [".", ",", "-", "0%", "¤0", "-¤0", "(¤0)",
    "USD$ EUR€ GBP£ JPY¥ CNYCN¥ KRW₩ INR₹ CADCA$ AUDA$ NZDNZ$ MXNMX$ BRLR$ HKDHK$ TWDNT$ ILS₪ VND₫ PHP₱"],
  "en-CA": [".", ",", "-", "0%", "¤0", "-¤0", "(¤0)",
    "USDUS$ EUR€ GBP£ JPYJP¥ CNYCN¥ KRW₩ INR₹ CAD$ AUDA$ NZDNZ$ MXNMX$ BRLR$ HKDHK$ TWDNT$ ILS₪ VND₫ PHP₱"],
  "en-GB": [".", ",", "-", "0%", "¤0", "-¤0", "(¤0)",
    "USDUS$ EUR€ GBP£ JPYJP¥ CNYCN¥ KRW₩ INR₹ CADCA$ AUDA$ NZDNZ$ MXNMX$ BRLR$ HKDHK$ TWDNT$ ILS₪ VND₫ PHP₱"],
  "en-AU": [".", ",", "-", "0%", "¤0", "-¤0", "(¤0)",
    "AUD$"],
  "en-IN": [".", ",", "-", "0%", "¤0", "-¤0", "(¤0)",
    "USD$ EUR€ GBP£ JPYJP¥ CNYCN¥ KRW₩ INR₹ CADCA$ AUDA$ NZDNZ$ MXNMX$ BRLR$ HKDHK$ TWDNT$ ILS₪ VND₫ PHP₱"],
  "de-DE": [",", ".", "-", "0\u00a0%", "0\u00a0¤", "-0\u00a0¤", "-0\u00a0¤",
    "USD$ EUR€ GBP£ JPY¥ CNYCN¥ KRW₩ INR₹ CADCA$ AUDAU$ NZDNZ$ MXNMX$ BRLR$ HKDHK$ TWDNT$ ILS₪ THB฿ VND₫"],
  "fr-FR": [",", "\u202f", "-", "0\u00a0%", "0\u00a0¤", "-0\u00a0¤", "(0\u00a0¤)",
    "USD$US EUR€ GBP£GB KRW₩ INR₹ CAD$CA AUD$AU NZD$NZ MXN$MX BRLR$ SGD$SG ILS₪ VND₫"],
  "es-ES": [",", ".", "-", "0\u00a0%", "0\u00a0¤", "-0\u00a0¤", "-0\u00a0¤",
    "USDUS$ EUR€ THB฿ VND₫"],
  "it-IT": [",", ".", "-", "0%", "0\u00a0¤", "-0\u00a0¤", "-0\u00a0¤",
    "EUR€ GBP£ CNYCN¥ CADCA$ AUDA$ NZDNZ$ ILS₪ THB฿ PHP₱"],
  "pt-BR": [",", ".", "-", "0%", "¤\u00a00", "-¤\u00a00", "-¤\u00a00",
    "USDUS$ EUR€ GBP£ JPYJP¥ CNYCN¥ KRW₩ INR₹ CADCA$ AUDAU$ NZDNZ$ MXNMX$ BRLR$ HKDHK$ TWDNT$ ILS₪ THB฿ VND₫"],
  "nl-NL": [",", ".", "-", "0%", "¤\u00a00", "¤\u00a0-0", "(¤\u00a00)",
    "USDUS$ EUR€ GBP£ JPYJP¥ CNYCN¥ KRW₩ INR₹ CADC$ AUDAU$ NZDNZ$ MXNMX$ BRLR$ HKDHK$ TWDNT$ ILS₪ THB฿ VND₫"],
  "sv-SE": [",", "\u00a0", "\u2212", "0\u00a0%", "0\u00a0¤", "-0\u00a0¤", "-0\u00a0¤",
    "USDUS$ EUR€ CADCA$ MXNMX$ BRLBR$ SEKkr NOKNkr DKKDkr ILS₪"],
  "ja-JP": [".", ",", "-", "0%", "¤0", "-¤0", "(¤0)",
    "USD$ EUR€ GBP£ JPY￥ CNY元 KRW₩ INR₹ CADCA$ AUDA$ NZDNZ$ MXNMX$ BRLR$ HKDHK$ TWDNT$ ILS₪ VND₫"],
  "ko-KR": [".", ",", "-", "0%", "¤0", "-¤0", "(¤0)",
    "USDUS$ EUR€ GBP£ JPYJP¥ CNYCN¥ KRW₩ INR₹ CADCA$ AUDAU$ NZDNZ$ MXNMX$ BRLR$ HKDHK$ TWDNT$ ILS₪ VND₫"],
  "zh-CN": [".", ",", "-", "0%", "¤0", "-¤0", "(¤0)",
    "USDUS$ EUR€ GBP£ JPYJP¥ CNY¥ KRW₩ INR₹ CADCA$ AUDAU$ NZDNZ$ MXNMX$ BRLR$ HKDHK$ TWDNT$ ILS₪ VND₫"],
};
const narrowSigns = "USD$ EUR€ GBP£ JPY¥ CNY¥ KRW₩ INR₹ CAD$ AUD$ NZD$ MXN$ BRLR$ HKD$ TWD$ SGD$ SEKkr NOKkr DKKkr PLNzł CZKKč HUFFt TRY₺ ILS₪ THB฿ VND₫ PHP₱ IDRRp ZARR RUB₽ UAH₴";
const currencyNames = {
  USD: "US dollars", EUR: "euros", GBP: "British pounds", JPY: "Japanese yen", CNY: "Chinese yuan", KRW: "South Korean won",
  INR: "Indian rupees", CAD: "Canadian dollars", AUD: "Australian dollars", NZD: "New Zealand dollars", MXN: "Mexican pesos",
  BRL: "Brazilian reals", CHF: "Swiss francs", HKD: "Hong Kong dollars", TWD: "New Taiwan dollars", SGD: "Singapore dollars",
  SEK: "Swedish kronor", NOK: "Norwegian kroner", DKK: "Danish kroner", PLN: "Polish zlotys", CZK: "Czech korunas",
  HUF: "Hungarian forints", TRY: "Turkish Lira", ILS: "Israeli new shekels", THB: "Thai baht", VND: "Vietnamese dong",
  PHP: "Philippine pesos", IDR: "Indonesian rupiahs", ZAR: "South African rand", RUB: "Russian rubles", UAH: "Ukrainian hryvnias",
  AED: "UAE dirhams", SAR: "Saudi riyals",
};
const wholeCurrencies = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF";
const millCurrencies = "BHD IQD JOD KWD LYD OMR TND";
// Singular and plural, short; narrow; singular and plural, long.
const unitForms = {
  "kilometer": " km| km|km| kilometer| kilometers", "meter": " m| m|m| meter| meters",
  "centimeter": " cm| cm|cm| centimeter| centimeters", "millimeter": " mm| mm|mm| millimeter| millimeters",
  "mile": " mi| mi|mi| mile| miles", "foot": " ft| ft|′| foot| feet", "inch": " in| in|″| inch| inches",
  "yard": " yd| yd|yd| yard| yards", "kilogram": " kg| kg|kg| kilogram| kilograms", "gram": " g| g|g| gram| grams",
  "pound": " lb| lb|#| pound| pounds", "ounce": " oz| oz|oz| ounce| ounces", "liter": " L| L|L| liter| liters",
  "milliliter": " mL| mL|mL| milliliter| milliliters", "gallon": " gal| gal|gal| gallon| gallons",
  "celsius": "°C|°C|°C| degree Celsius| degrees Celsius",
  "fahrenheit": "°F|°F|°| degree Fahrenheit| degrees Fahrenheit", "percent": "%|%|%| percent| percent",
  "degree": " deg| deg|°| degree| degrees", "bit": " bit| bit|bit| bit| bits", "byte": " byte| byte|B| byte| bytes",
  "kilobyte": " kB| kB|kB| kilobyte| kilobytes", "megabyte": " MB| MB|MB| megabyte| megabytes",
  "gigabyte": " GB| GB|GB| gigabyte| gigabytes", "terabyte": " TB| TB|TB| terabyte| terabytes",
  "millisecond": " ms| ms|ms| millisecond| milliseconds", "second": " sec| sec|s| second| seconds",
  "minute": " min| min|m| minute| minutes", "hour": " hr| hr|h| hour| hours", "day": " day| days|d| day| days",
  "week": " wk| wks|w| week| weeks", "month": " mth| mths|m| month| months", "year": " yr| yrs|y| year| years",
  "kilometer-per-hour": " km/h| km/h|km/h| kilometer per hour| kilometers per hour",
  "mile-per-hour": " mph| mph|mph| mile per hour| miles per hour",
};

// A number as decimal digits: `digits`, with the point after the first `point` of them.
function decimalOf(value) {
  const text = typeof value === "bigint" ? StringOf(value) : StringOf(NumberOf(value));
  const negative = text.startsWith("-") || ObjectOf.is(value, -0);
  const found = /^-?(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(text);
  if (!found) return { negative, special: text === "NaN" ? "NaN" : "∞" };
  const [, whole, fraction = "", exponent = "0"] = found;
  return trimmed({ negative, digits: whole + fraction, point: whole.length + NumberOf(exponent) });
}

function trimmed({ negative, digits, point }) {
  const zeros = /^0*/.exec(digits)[0].length;
  const rest = digits.slice(zeros).replace(/0+$/, "");
  return rest === "" ? { negative, digits: "", point: 0 } : { negative, digits: rest, point: point - zeros };
}

// Keeps the first `count` digits; halves round away from zero.
function roundedTo(decimal, count) {
  const { negative, digits, point } = decimal;
  if (count >= digits.length) return decimal;
  if (count < 0) return { negative, digits: "", point: 0 };
  const kept = digits.slice(0, count);
  if (digits[count] < "5") return trimmed({ negative, digits: kept, point });
  const up = StringOf(BigIntOf(`0${kept}`) + BigIntOf(1)).padStart(count, "0");
  return trimmed({ negative, digits: up, point: point + (up.length - count) });
}

function roundedBy(decimal, digits) {
  if (digits.maximumSignificantDigits !== undefined) return roundedTo(decimal, digits.maximumSignificantDigits);
  if (digits.compact) return roundedTo(decimal, Maths.max(decimal.point, decimal.digits === "" ? 1 : 2));
  return roundedTo(decimal, decimal.point + digits.maximumFractionDigits);
}

// Integer and fraction digits, padded with zeros as requested.
function writtenDigits(decimal, digits) {
  const { digits: known, point } = decimal;
  const whole = point > 0 ? known.slice(0, point).padEnd(point, "0") : "";
  const fraction = point > 0 ? known.slice(point) : "0".repeat(known === "" ? 0 : -point) + known;
  const significant = digits.minimumSignificantDigits;
  const least = significant === undefined ? digits.minimumFractionDigits ?? 0
    : known === "" ? significant - 1 : Maths.max(0, significant - point);
  return [whole.padStart(digits.minimumIntegerDigits, "0"), fraction.padEnd(least, "0")];
}

function digitOptions(options, least, most) {
  const minimumIntegerDigits = wholeNumber(options, "minimumIntegerDigits", 1, 21, 1);
  if (options.minimumSignificantDigits !== undefined || options.maximumSignificantDigits !== undefined) {
    const minimumSignificantDigits = wholeNumber(options, "minimumSignificantDigits", 1, 21, 1);
    const maximumSignificantDigits = wholeNumber(options, "maximumSignificantDigits", minimumSignificantDigits, 21, 21);
    return { minimumIntegerDigits, minimumSignificantDigits, maximumSignificantDigits };
  }
  const given = wholeNumber(options, "minimumFractionDigits", 0, 100, undefined);
  const limit = wholeNumber(options, "maximumFractionDigits", 0, 100, undefined);
  if (given !== undefined && limit !== undefined && given > limit) throw new OutOfRange("maximumFractionDigits value is out of range");
  const minimumFractionDigits = given ?? Maths.min(least, limit ?? least);
  const maximumFractionDigits = limit ?? Maths.max(most, minimumFractionDigits);
  return { minimumIntegerDigits, minimumFractionDigits, maximumFractionDigits };
}

// Without signs and groups, for callers that need only the digits.
function plainDigits(value, digits) {
  const decimal = decimalOf(value);
  if (decimal.special) return decimal.special;
  const [whole, fraction] = writtenDigits(roundedBy(decimal, digits), digits);
  return (decimal.negative ? "-" : "") + whole + (fraction === "" ? "" : "." + fraction);
}

function currencyDigits(currency) {
  return wholeCurrencies.includes(currency) ? 0 : millCurrencies.includes(currency) ? 3 : 2;
}

function signOfCurrency({ currency, currencyDisplay, data }) {
  if (currencyDisplay === "code") return currency;
  const signs = currencyDisplay === "narrowSymbol" ? narrowSigns : numberTexts[data][7];
  return signs.split(" ").find((entry) => entry.startsWith(currency))?.slice(3) ?? currency;
}

function makeNumberFormat(locales, given) {
  const options = optionsOf(given);
  const { locale, data } = resolveLocale(locales);
  const style = choice(options, "style", ["decimal", "percent", "currency", "unit"], "decimal");
  const state = { locale, data, style };
  if (options.currency !== undefined && !/^[a-z]{3}$/i.test(options.currency)) {
    throw new OutOfRange(`Invalid currency code : ${textOf(options.currency, 40)}`);
  }
  if (style === "currency") {
    if (options.currency === undefined) throw new WrongType("Currency code is required with currency style.");
    state.currency = StringOf(options.currency).toUpperCase();
    state.currencyDisplay = choice(options, "currencyDisplay", ["code", "symbol", "narrowSymbol", "name"], "symbol");
    state.currencySign = choice(options, "currencySign", ["standard", "accounting"], "standard");
  } else if (style === "unit") {
    if (options.unit === undefined) throw new WrongType("Unit is required with unit style.");
    state.unit = choice(options, "unit", keys(unitForms));
    state.unitDisplay = choice(options, "unitDisplay", ["short", "narrow", "long"], "short");
  }
  state.notation = choice(options, "notation", ["standard", "scientific", "engineering", "compact"], "standard");
  const places = style === "currency" ? currencyDigits(state.currency) : undefined;
  state.digits = digitOptions(options, places ?? 0, places ?? (style === "percent" ? 0 : 3));
  const sized = ["minimumFractionDigits", "maximumFractionDigits", "minimumSignificantDigits", "maximumSignificantDigits"];
  if (state.notation === "compact") {
    state.compactDisplay = choice(options, "compactDisplay", ["short", "long"], "short");
    if (sized.every((name) => options[name] === undefined)) state.digits = { minimumIntegerDigits: state.digits.minimumIntegerDigits, minimumFractionDigits: 0, compact: true };
  }
  const grouping = options.useGrouping;
  state.useGrouping = grouping === undefined || grouping === "true" || grouping === "false" ? (state.notation === "compact" ? "min2" : "auto")
    : grouping === true ? "always" : grouping ? choice(options, "useGrouping", ["min2", "auto", "always"]) : false;
  state.signDisplay = choice(options, "signDisplay", ["auto", "never", "always", "exceptZero", "negative"], "auto");
  return state;
}

function groupsOf(whole, { useGrouping, data, locale }) {
  const from = useGrouping === "min2" || (useGrouping === "auto" && /^(?:es|it)/.test(data)) ? 5 : 4;
  if (!useGrouping || whole.length < from) return [whole];
  const size = locale === "en-IN" ? 2 : 3;
  const groups = [whole.slice(-3)];
  for (let end = whole.length - 3; end > 0; end -= size) groups.unshift(whole.slice(Maths.max(end - size, 0), end));
  return groups;
}

const compactNames = [["", ""], ["K", " thousand"], ["M", " million"], ["B", " billion"], ["T", " trillion"]];

// Scales the number to thousands or a power of ten, and returns the suffix.
function scaled(decimal, { notation, compactDisplay, digits }) {
  const moved = (steps) => (decimal.digits === "" ? decimal : { ...decimal, point: decimal.point - steps });
  if (notation === "compact") {
    let power = Maths.min(Maths.max(Maths.floor((decimal.point - 1) / 3), 0), 4);
    if (power < 4 && roundedBy(moved(power * 3), digits).point > 3) power++;
    const [short, long] = compactNames[power];
    const text = compactDisplay === "long" ? long : short;
    const space = text.startsWith(" ") ? [{ type: "literal", value: " " }] : [];
    return [moved(power * 3), text === "" ? [] : [...space, { type: "compact", value: text.trim() }]];
  }
  const step = notation === "engineering" ? 3 : 1;
  const exponentOf = (point) => Maths.floor((point - 1) / step) * step;
  let exponent = decimal.digits === "" ? 0 : exponentOf(decimal.point);
  const rounded = roundedBy(moved(exponent), digits);
  if (rounded.point > step) exponent += step;
  const sign = exponent < 0 ? [{ type: "exponentMinusSign", value: "-" }] : [];
  return [moved(exponent), [{ type: "exponentSeparator", value: "E" }, ...sign, { type: "exponentInteger", value: StringOf(Maths.abs(exponent)) }]];
}

function numberBody(decimal, state) {
  if (decimal.special) return { parts: [{ type: decimal.special === "NaN" ? "nan" : "infinity", value: decimal.special }], zero: decimal.special === "NaN" };
  const percent = state.style === "percent" && decimal.digits !== "" ? { ...decimal, point: decimal.point + 2 } : decimal;
  const [sized, after] = state.notation === "standard" ? [percent, []] : scaled(percent, state);
  const rounded = roundedBy(sized, state.digits);
  const [whole, fraction] = writtenDigits(rounded, state.digits);
  const [decimalSign, groupSign] = numberTexts[state.data];
  const parts = [];
  groupsOf(whole, state).forEach((value, position) => {
    if (position > 0) parts.push({ type: "group", value: groupSign });
    parts.push({ type: "integer", value });
  });
  if (fraction !== "") parts.push({ type: "decimal", value: decimalSign }, { type: "fraction", value: fraction });
  return { parts: [...parts, ...after], zero: rounded.digits === "", one: whole === "1" && fraction === "" };
}

function signOf(negative, zero, signDisplay) {
  switch (signDisplay) {
    case "never": return "";
    case "always": return negative ? "-" : "+";
    case "exceptZero": return zero ? "" : negative ? "-" : "+";
    case "negative": return negative && !zero ? "-" : "";
    default: return negative ? "-" : "";
  }
}

// The pattern around the number: `0` for the number, `¤` for the currency, and signs.
function frameOf(state, sign, one) {
  const [, , , percent, money, owed, accounts] = numberTexts[state.data];
  if (state.style === "percent") return sign + percent;
  if (state.style === "unit") {
    const [short, shorts, narrow, long, longs] = unitForms[state.unit].split("|");
    return `${sign}0${{ short: one ? short : shorts, narrow, long: one ? long : longs }[state.unitDisplay]}`;
  }
  if (state.style !== "currency") return sign + "0";
  if (state.currencyDisplay === "name") return `${sign}0 ¤`;
  if (sign === "-" && state.currencySign === "accounting") return accounts;
  return sign === "-" ? owed : sign + money;
}

function numberParts(state, value) {
  const exact = typeof value === "bigint" ? value : typeof value === "object" && value !== null && typeof value.valueOf() === "bigint" ? value.valueOf() : NumberOf(value);
  const decimal = decimalOf(exact);
  const { parts, zero, one } = numberBody(decimal, state);
  const sign = signOf(decimal.negative && decimal.special !== "NaN", zero, state.signDisplay);
  const frame = frameOf(state, sign, one);
  const currency = state.style !== "currency" ? "" : state.currencyDisplay === "name" ? currencyNames[state.currency] ?? state.currency : signOfCurrency(state);
  const written = [];
  const literal = (text) => {
    const last = written[written.length - 1];
    if (last?.type === "literal") last.value += text;
    else written.push({ type: "literal", value: text });
  };
  for (let at = 0; at < frame.length; at++) {
    const character = frame[at];
    if (character === "0") {
      written.push(...parts);
    } else if (character === "¤") {
      // Letters are separated from digits by a space.
      if (frame[at - 1] === "0") literal("\u00a0");
      written.push({ type: "currency", value: currency });
      if (frame[at + 1] === "0" && /\p{L}$/u.test(currency) && !decimal.special) literal("\u00a0");
    } else if (character === "-" && at <= 2 && !frame.slice(0, at).includes("0")) {
      written.push({ type: "minusSign", value: numberTexts[state.data][2] });
    } else if (character === "+" && at === 0) {
      written.push({ type: "plusSign", value: "+" });
    } else if (character === "%") {
      written.push({ type: state.style === "unit" ? "unit" : "percentSign", value: "%" });
    } else if (state.style === "unit" && character !== " ") {
      written.push({ type: "unit", value: frame.slice(at) });
      break;
    } else {
      literal(character);
    }
  }
  return written;
}

const joinParts = (parts) => parts.map((part) => part.value).join("");

const numberFormat = intlClass("NumberFormat", makeNumberFormat, {
  format: (state, value) => joinParts(numberParts(state, value)),
  formatToParts: (state, value) => numberParts(state, value),
  formatRange(state, start, end) {
    const [from, to] = [joinParts(numberParts(state, start)), joinParts(numberParts(state, end))];
    return from === to ? `~${from}` : `${from}–${to}`;
  },
  resolvedOptions({ locale, style, currency, currencyDisplay, currencySign, unit, unitDisplay, digits, useGrouping, notation, compactDisplay, signDisplay }) {
    const { compact, ...sizes } = digits;
    const all = {
      locale, numberingSystem: "latn", style, currency, currencyDisplay, currencySign, unit, unitDisplay, ...sizes, useGrouping, notation, compactDisplay,
      signDisplay, roundingIncrement: 1, roundingMode: "halfExpand", roundingPriority: "auto", trailingZeroDisplay: "auto",
    };
    return ObjectOf.fromEntries(entries(all).filter(([, value]) => value !== undefined));
  },
}, { callable: true, bound: ["format"] });

const numberToText = (value, locales, options) => joinParts(numberParts(makeNumberFormat(locales, options), value));
addHidden(NumberOf.prototype, {
  toLocaleString(locales, options) {
    return numberToText(NumberOf.prototype.valueOf.call(this), locales, options);
  },
});
addHidden(BigIntOf.prototype, {
  toLocaleString(locales, options) {
    return numberToText(BigIntOf.prototype.valueOf.call(this), locales, options);
  },
});
addHidden(ArrayOf.prototype, {
  toLocaleString(locales, options) {
    return ArrayOf.from(this, (item) => (item === undefined || item === null ? "" : item.toLocaleString(locales, options))).join(",");
  },
});
