// Intl, which the engine lacks: locales and the smaller formats. Numbers and dates are in separate files.
//
// There is data for the locales of `dateTexts`. Other regions of these languages use the language's data, all others English.
// Lists, plurals, relative times and compact numbers are English in every locale.
const { WeakMap: StateOf, Set: UniqueSet } = globalThis;
const Intl = {};
defineProperty(Intl, SymbolOf.toStringTag, { value: "Intl", configurable: true });

const defaultLocale = "en-US";
const languageRegions = { en: "en-US", de: "de-DE", fr: "fr-FR", es: "es-ES", it: "it-IT", pt: "pt-BR", nl: "nl-NL", sv: "sv-SE", ja: "ja-JP", ko: "ko-KR", zh: "zh-CN" };
const languageTag = /^(?:[a-z]{2,3}|[a-z]{5,8})(?:-[a-z]{4})?(?:-(?:[a-z]{2}|\d{3}))?(?:-(?:[a-z\d]{5,8}|\d[a-z\d]{3}))*(?:-[\da-wyz](?:-[a-z\d]{2,8})+)*(?:-x(?:-[a-z\d]{1,8})+)?$/i;

function canonicalTag(tag) {
  if (typeof tag !== "string" && (typeof tag !== "object" || tag === null)) throw new WrongType("a locale is a text such as `en-US`");
  const text = StringOf(tag);
  if (!languageTag.test(text)) throw new OutOfRange(`Incorrect locale information provided: \`${textOf(text, 80)}\` is no locale such as \`en-US\``);
  let extended = false;
  return text.split("-").map((part, position) => {
    const lower = part.toLowerCase();
    if (position > 0 && part.length === 1) extended = true;
    if (position === 0 || extended) return lower;
    if (part.length === 4 && /^[a-z]/i.test(part)) return lower[0].toUpperCase() + lower.slice(1);
    return part.length === 2 ? part.toUpperCase() : lower;
  }).join("-");
}

function localeList(locales) {
  if (locales === undefined) return [];
  if (typeof locales === "string") return [canonicalTag(locales)];
  if (locales === null) throw new WrongType("locales are a text or a list of texts, not null");
  return [...new UniqueSet(ArrayOf.from(locales, canonicalTag))];
}

// The longest prefix of the tag that has data.
function supportedPart(tag) {
  for (let part = tag.replace(/-[a-z\d](?:-.*)?$/i, ""); part !== ""; part = part.slice(0, Maths.max(part.lastIndexOf("-"), 0))) {
    if (dateTexts[part] !== undefined || languageRegions[part] !== undefined) return part;
  }
  return undefined;
}

// The used locale, the locale of its data, and the requests of its extension.
function resolveLocale(locales) {
  for (const tag of localeList(locales)) {
    const locale = supportedPart(tag);
    if (locale === undefined) continue;
    const hourCycle = /-u-(?:.*-)?hc-(h11|h12|h23|h24)(?:-|$)/.exec(tag)?.[1];
    return { locale, data: languageRegions[locale] ?? locale, hourCycle };
  }
  return { locale: defaultLocale, data: defaultLocale, hourCycle: undefined };
}

function optionsOf(options) {
  if (options === undefined) return {};
  if (options === null) throw new WrongType("options are an object, not null");
  return ObjectOf(options);
}

function choice(options, name, values, otherwise) {
  const value = options[name];
  if (value === undefined) return otherwise;
  const text = StringOf(value);
  if (!values.includes(text)) throw new OutOfRange(`Value ${textOf(text, 80)} out of range for Intl options property ${name}`);
  return text;
}

function wholeNumber(options, name, least, most, otherwise) {
  if (options[name] === undefined) return otherwise;
  const value = NumberOf(options[name]);
  if (!(value >= least && value <= most)) throw new OutOfRange(`${name} value is out of range`);
  return Maths.floor(value);
}

// A constructor like those of the platform: usable without `new`, with hidden state and bound getters.
function intlClass(name, make, methods, { callable = false, bound = [], supports = supportedPart } = {}) {
  const states = new StateOf();
  const stateOf = (self) => {
    const state = states.get(self);
    if (state === undefined) throw new WrongType(`this is not an Intl.${name}`);
    return state;
  };
  const constructor = {
    [name]: function (locales, options) {
      if (!new.target && !callable) throw new WrongType(`Intl.${name} needs \`new\``);
      const self = ObjectOf.create(new.target ? new.target.prototype : constructor.prototype);
      states.set(self, make(locales, options));
      return self;
    },
  }[name];
  const prototype = {};
  for (const method of keys(methods)) {
    const act = methods[method];
    if (bound.includes(method)) {
      const getter = function () {
        const state = stateOf(this);
        return state.bound ??= (...values) => act(state, ...values);
      };
      defineProperty(prototype, method, { get: getter, configurable: true, enumerable: false });
    } else {
      const call = { [method](...values) { return act(stateOf(this), ...values); } }[method];
      defineProperty(prototype, method, { value: call, writable: true, configurable: true, enumerable: false });
    }
  }
  defineProperty(prototype, "constructor", { value: constructor, writable: true, configurable: true, enumerable: false });
  defineProperty(prototype, SymbolOf.toStringTag, { value: `Intl.${name}`, configurable: true });
  defineProperty(constructor, "prototype", { value: prototype, writable: false });
  addHidden(constructor, { supportedLocalesOf: (locales) => localeList(locales).filter((tag) => supports(tag) !== undefined) });
  addHidden(Intl, { [name]: constructor });
  return { make, methods };
}

function addHidden(target, members) {
  for (const name of keys(members)) {
    defineProperty(target, name, { value: members[name], writable: true, configurable: true, enumerable: false });
  }
}

addHidden(Intl, {
  getCanonicalLocales: (locales) => localeList(locales),
  supportedValuesOf(key) {
    switch (StringOf(key)) {
      case "timeZone": return host(OP.ZONE_NAME, "*").sort();
      case "currency": return keys(currencyNames).sort();
      case "calendar": return ["gregory"];
      case "numberingSystem": return ["latn"];
      case "collation": return keys(collationTypes).sort();
      case "unit": return keys(unitForms).sort();
      default: throw new OutOfRange(`Invalid key : ${key}`);
    }
  },
});

// English: one, two, few and other.
function pluralCategory(type, text) {
  if (type === "cardinal") return text === "1" || text === "-1" ? "one" : "other";
  const ending = /(?:^|\D)\d*?(1?\d)$/.exec(text)?.[1] ?? "";
  if (ending.startsWith("1") && ending.length === 2) return "other";
  return { 1: "one", 2: "two", 3: "few" }[ending] ?? "other";
}

intlClass("PluralRules", (locales, given) => {
  const options = optionsOf(given);
  const { locale } = resolveLocale(locales);
  return { locale, type: choice(options, "type", ["cardinal", "ordinal"], "cardinal"), digits: digitOptions(options, 0, 3) };
}, {
  select: ({ type, digits }, value) => pluralCategory(type, plainDigits(value, digits)),
  resolvedOptions: ({ locale, type, digits }) =>
    ({ locale, type, ...digits, pluralCategories: type === "cardinal" ? ["one", "other"] : ["few", "one", "two", "other"] }),
});

const relativeUnits = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
const relativeShort = { second: "sec.", minute: "min.", hour: "hr.", day: "day", week: "wk.", month: "mo.", quarter: "qtr.", year: "yr." };
const relativeNarrow = { second: "s", minute: "min", hour: "h", day: "d", week: "w", month: "mo", quarter: "q", year: "y" };
const relativeWords = { day: ["yesterday", "today", "tomorrow"], second: [undefined, "now", undefined] };

function relativeUnit(style, unit, text) {
  if (style === "narrow") return relativeNarrow[unit];
  const one = text === "1";
  if (style === "long") return one ? ` ${unit}` : ` ${unit}s`;
  if (unit === "day") return one ? " day" : " days";
  return unit === "quarter" && !one ? " qtrs." : ` ${relativeShort[unit]}`;
}

function relativeParts({ style, numeric }, value, unit) {
  const amount = NumberOf(value);
  const name = StringOf(unit).replace(/s$/, "");
  if (!relativeUnits.includes(name)) throw new OutOfRange(`Invalid unit argument for format() '${unit}'`);
  if (!NumberOf.isFinite(amount)) throw new OutOfRange("a relative time needs a finite number");
  if (numeric === "auto" && [-1, 0, 1].includes(amount)) {
    const short = style === "long" ? name : relativeShort[name];
    const word = relativeWords[name]?.[amount + 1] ??
      (amount === 0 ? `this ${short}` : relativeWords[name] || name === "minute" || name === "hour" ? undefined : `${amount < 0 ? "last" : "next"} ${short}`);
    if (word !== undefined) return [{ type: "literal", value: word }];
  }
  const past = amount < 0 || ObjectOf.is(amount, -0);
  const parts = numberFormat.methods.formatToParts(numberFormat.make("en-US"), Maths.abs(amount));
  const text = parts.map((part) => part.value).join("");
  const numbers = parts.map((part) => ({ ...part, unit: name }));
  const after = relativeUnit(style, name, text);
  return past
    ? [...numbers, { type: "literal", value: `${after} ago` }]
    : [{ type: "literal", value: "in " }, ...numbers, { type: "literal", value: after }];
}

intlClass("RelativeTimeFormat", (locales, given) => {
  const options = optionsOf(given);
  return {
    locale: resolveLocale(locales).locale,
    style: choice(options, "style", ["long", "short", "narrow"], "long"),
    numeric: choice(options, "numeric", ["always", "auto"], "always"),
  };
}, {
  format: (state, value, unit) => relativeParts(state, value, unit).map((part) => part.value).join(""),
  formatToParts: (state, value, unit) => relativeParts(state, value, unit),
  resolvedOptions: ({ locale, style, numeric }) => ({ locale, style, numeric, numberingSystem: "latn" }),
});

function listParts({ type, style, locale }, list) {
  const items = ArrayOf.from(list, (item) => {
    if (typeof item !== "string") throw new WrongType("Iterable yielded a value which is not a string");
    return item;
  });
  const word = { conjunction: style === "long" ? "and" : style === "short" && locale !== "en-GB" ? "&" : "", disjunction: "or", unit: "" }[type];
  const comma = type === "unit" && style === "narrow" ? " " : ", ";
  const serial = /^en(?:-US|-CA)?$/.test(locale);
  const parts = [];
  items.forEach((value, position) => {
    const last = position === items.length - 1;
    if (position > 0) {
      const joined = items.length === 2 || !serial ? ` ${word} ` : `${comma}${word} `;
      parts.push({ type: "literal", value: last && word !== "" ? joined : comma });
    }
    parts.push({ type: "element", value });
  });
  return parts;
}

intlClass("ListFormat", (locales, given) => {
  const options = optionsOf(given);
  const { locale } = resolveLocale(locales);
  return {
    locale,
    type: choice(options, "type", ["conjunction", "disjunction", "unit"], "conjunction"),
    style: choice(options, "style", ["long", "short", "narrow"], "long"),
  };
}, {
  format: (state, list) => listParts(state, list).map((part) => part.value).join(""),
  formatToParts: (state, list) => listParts(state, list),
  resolvedOptions: ({ locale, type, style }) => ({ locale, type, style }),
});

publish({ Intl });
