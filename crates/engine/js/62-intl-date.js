// Intl.DateTimeFormat: dates in any time zone, written with the patterns of `dateTexts`.
const dateData = {};
const dateDataOf = (name) => dateData[name] ??= parse(dateTexts[name]);

const textWidths = ["narrow", "short", "long"];
const digitWidths = ["2-digit", "numeric"];
const dateFields = { weekday: textWidths, era: textWidths, year: digitWidths, month: [...digitWidths, ...textWidths], day: digitWidths };
const timeFields = { dayPeriod: textWidths, hour: digitWidths, minute: digitWidths, second: digitWidths };
const zoneStyles = ["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"];
const stylesOfDate = ["full", "long", "medium", "short"];

// The database's spelling; the sandbox itself uses UTC.
function zoneOf(value) {
  if (value === undefined) return "UTC";
  const name = StringOf(value);
  const known = /^utc$/i.test(name) ? "UTC" : host(OP.ZONE_NAME, name.replace(/^\*$/, ""));
  if (typeof known !== "string") throw new OutOfRange(`Invalid time zone specified: ${textOf(name, 80)}`);
  return known;
}

// `wanted` is what the result must contain at least: any, date or time; `otherwise` the default fields: date, time or all.
function makeDateFormat(locales, given, wanted = "any", otherwise = "date") {
  const options = optionsOf(given);
  const { locale, data, hourCycle } = resolveLocale(locales);
  const fields = {};
  for (const [name, values] of [...entries(dateFields), ...entries(timeFields)]) fields[name] = choice(options, name, values);
  fields.fractionalSecondDigits = wholeNumber(options, "fractionalSecondDigits", 1, 3);
  fields.timeZoneName = choice(options, "timeZoneName", zoneStyles);
  const hour12 = options.hour12 === undefined ? undefined : options.hour12 ? true : false;
  const asked = choice(options, "hourCycle", ["h11", "h12", "h23", "h24"], hourCycle);
  const state = {
    locale, data: dateDataOf(data), fields, timeZone: zoneOf(options.timeZone),
    dateStyle: choice(options, "dateStyle", stylesOfDate), timeStyle: choice(options, "timeStyle", stylesOfDate),
  };
  const [usual, twelve, twentyFour] = state.data.cycles.split("|");
  state.cycle = hour12 === undefined ? asked ?? usual : hour12 ? twelve : twentyFour;
  state.isUsualCycle = hour12 === undefined && asked === undefined;
  choice(options, "formatMatcher", ["basic", "best fit"]);
  choice(options, "localeMatcher", ["lookup", "best fit"]);
  if (state.dateStyle !== undefined || state.timeStyle !== undefined) checkStyles(state, wanted);
  else addDefaults(fields, wanted, otherwise);
  state.pattern = patternFor(state);
  return state;
}

function checkStyles({ fields, dateStyle, timeStyle }, wanted) {
  const explicit = keys(fields).find((name) => fields[name] !== undefined);
  if (explicit) throw new WrongType(`Can't set option ${explicit} when ${dateStyle === undefined ? "timeStyle" : "dateStyle"} is used`);
  if (wanted === "date" && timeStyle !== undefined) throw new WrongType("Invalid option : timeStyle");
  if (wanted === "time" && dateStyle !== undefined) throw new WrongType("Invalid option : dateStyle");
}

function addDefaults(fields, wanted, otherwise) {
  const shown = (names) => names.some((name) => fields[name] !== undefined);
  const hasDate = wanted !== "time" && shown(["weekday", "year", "month", "day"]);
  const hasTime = wanted !== "date" && shown(["dayPeriod", "hour", "minute", "second", "fractionalSecondDigits"]);
  if (hasDate || hasTime) return;
  if (otherwise !== "time") for (const name of ["year", "month", "day"]) fields[name] ??= "numeric";
  if (otherwise !== "date") for (const name of ["hour", "minute", "second"]) fields[name] ??= "numeric";
}

const withCycle = (state, pattern) => (state.cycle === "h11" ? pattern.replace(/h/g, "K") : state.cycle === "h24" ? pattern.replace(/H/g, "k") : pattern);
const countsToTwelve = (state) => state.cycle === "h11" || state.cycle === "h12";

function patternFor(state) {
  const { data, dateStyle, timeStyle } = state;
  if (dateStyle === undefined && timeStyle === undefined) return fieldPattern(state);
  const date = dateStyle === undefined ? undefined : data.dates[stylesOfDate.indexOf(dateStyle)];
  const time = timeStyle === undefined ? undefined : styleTime(state);
  if (time === undefined) return date;
  if (date === undefined) return time;
  return glued(data.styleGlue[stylesOfDate.indexOf(dateStyle)], date, time);
}

// The locale's own pattern if its usual hour cycle applies; otherwise the pattern for the fields of the style.
function styleTime(state) {
  const { data, timeStyle } = state;
  const own = data.times[stylesOfDate.indexOf(timeStyle)];
  if (own.includes("h") === countsToTwelve(state)) return withCycle(state, own);
  const clock = data.patterns[(countsToTwelve(state) ? "h" : "H") + (timeStyle === "short" ? "m" : "ms")];
  return withCycle(state, own.includes("z") ? data.zone[1].replace("{0}", clock) : clock);
}

// Quoted text has no fields, so month names can be inserted safely.
const glued = (glue, date, time) => glue.replace(/\{([01])\}/g, (_, which) => (which === "1" ? date : time));

function fieldPattern(state) {
  const { data, fields } = state;
  const date = datePattern(state);
  const time = timePattern(state);
  const zone = fields.timeZoneName === undefined ? undefined : "z";
  const clock = time === undefined ? zone : zone === undefined ? time : zonedTime(state, time);
  if (date === undefined || clock === undefined) return date ?? clock;
  const [usual, longMonth, weekdayAlone, longBoth, shortMonth] = data.glue;
  const { weekday, year, month, day, hour, fractionalSecondDigits } = fields;
  if (weekday && !year && !month && !day && hour && !fractionalSecondDigits) return glued(weekdayAlone, date, clock);
  if (month === "long") return glued(weekday ? longBoth : longMonth, date, clock);
  return glued(month === "short" ? shortMonth : usual, date, clock);
}

// An hour alone is written differently next to a zone.
function zonedTime({ data, fields }, time) {
  const found = /^(?:[^a-z']|a|B)*?(h+|H+|k+|K+)(?:[^a-zA-Z']|'[^']*'|a|B)*$/.exec(time);
  if (!found || fields.fractionalSecondDigits) return data.zone[1].replace("{0}", time);
  const [, hour] = found;
  const known = data.patterns[/[hK]/.test(hour) ? "hz" : "Hz"];
  return known.replace(/h+|H+/, (token) => (fields.hour === "2-digit" ? hour : hour[0].repeat(token.length)));
}

function datePattern({ data, fields: { weekday, era, year, month, day } }) {
  const isText = textWidths.includes(month);
  const monthKey = month === undefined ? "" : !isText ? "M" : month === "long" ? "MMMM" : "MMM";
  const key = (weekday ? "E" : "") + (year ? "y" : "") + monthKey + (day ? "d" : "");
  if (key === "") return era ? "G" : undefined;
  const width = { narrow: 5, short: 3, long: 4 };
  // The locale's two-digit form applies only if the caller did not choose a form.
  const isMixed = (month === "2-digit") !== (day === "2-digit") && month && day && !weekday;
  const known = (weekday === "long" && data.patterns[`EEE${key}`]) || data.patterns[oddMonthKey(key, weekday, month)];
  const pattern = known.replace(/'[^']*'|E+|M{3,}|L+|M+|d+|y+/g, (token) => {
    const letter = token[0];
    if (letter === "'") return token;
    if (letter === "E") return "E".repeat(width[weekday]);
    if (letter === "L" || token.length >= 3) return letter.repeat(width[month] ?? 2);
    const asked = { M: month, d: day, y: year }[letter];
    if (asked === "2-digit") return letter + letter;
    return isMixed && letter !== "y" ? letter : token;
  });
  return era ? `${pattern} ${"G".repeat(!isText && month ? 5 : width[era])}` : pattern;
}

// A weekday with only a month is unusual; without a requested form, the month is written in parentheses.
function oddMonthKey(key, weekday, month) {
  if (key !== "EM" && key !== "EMMM" && key !== "EMMMM") return key;
  return (month === "2-digit" && weekday === "short") || month === "narrow" ? "EMMMM" : key;
}

function timePattern(state) {
  const { data, fields: { hour, minute, second, fractionalSecondDigits, dayPeriod } } = state;
  const digits = fractionalSecondDigits ?? 0;
  if (!hour && !minute && !second) return digits > 0 ? "S".repeat(digits) : dayPeriod ? "B" : undefined;
  const letter = countsToTwelve(state) ? "h" : "H";
  const isMixed = state.isUsualCycle && (minute === "2-digit" || second === "2-digit");
  const key = (hour ? letter : "") + (minute ? "m" : "") + (second || (digits > 0 && (hour || minute)) ? "s" : "");
  const known = data.patterns[key === `${letter}s` ? `${letter}ms` : key];
  const pattern = known.replace(/'[^']*'|[hH]+|s+|a/g, (token) => {
    if (token === "a") return dayPeriod ? "B" : "a";
    if (token[0] === "s") return digits > 0 ? `${token}'${data.fraction}'${"S".repeat(digits)}` : token;
    if (token[0] === "'") return token;
    return hour === "2-digit" ? token[0] + token[0] : isMixed ? token[0] : token;
  });
  return withCycle(state, pattern);
}

// Year, month, day, hour, minute, second, millisecond, weekday, offset, abbreviation, long and short name.
function clockAt(instant, zone) {
  if (zone !== "UTC") return host(OP.ZONED_TIME, stringify([instant, zone]));
  const date = new DateOf(instant);
  return [
    date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate(), date.getUTCHours(), date.getUTCMinutes(),
    date.getUTCSeconds(), date.getUTCMilliseconds(), date.getUTCDay(), 0, "UTC", "Coordinated Universal Time", "UTC",
  ];
}

function instantOf(value) {
  const instant = value === undefined ? DateOf.now() : NumberOf(value);
  if (!(Maths.abs(instant) <= 8.64e15)) throw new OutOfRange("Invalid time value");
  return Maths.trunc(instant) + 0;
}

const twoDigits = (number) => StringOf(number).padStart(2, "0");
const sized = (number, token) => (token.length === 2 ? twoDigits(number % 100) : StringOf(number));

function offsetText(seconds, style, { zone: [sample] }) {
  const [, name, minus] = /^(\D+?)([-\u2212])/.exec(sample);
  const total = Maths.abs(seconds);
  const [hours, minutes, rest] = [Maths.floor(total / 3600), Maths.floor(total / 60) % 60, total % 60];
  const long = style === "long";
  const smaller = (long || minutes > 0 || rest > 0 ? `:${twoDigits(minutes)}` : "") + (rest > 0 ? `:${twoDigits(rest)}` : "");
  return name + (seconds < 0 ? minus : "+") + (long ? twoDigits(hours) : hours) + smaller;
}

function zoneText({ data, locale, fields, timeStyle }, clock) {
  const style = fields.timeZoneName ?? (timeStyle === "full" ? "long" : "short");
  const [seconds, , long, short] = clock.slice(8);
  if (style === "shortOffset") return offsetText(seconds, "short", data);
  if (style === "longOffset") return offsetText(seconds, "long", data);
  if (style.startsWith("long")) return locale.startsWith("en") && long !== "" ? long : offsetText(seconds, "long", data);
  if (short !== "" && data.abbreviations.split(" ").includes(short)) return short;
  return offsetText(seconds, "short", data);
}

// English parts of the day.
function dayPeriodText(hour, minute, halves) {
  if (halves[0] !== "AM" && halves[0] !== "a.m." && halves[0] !== "am") return halves[hour < 12 ? 0 : 1];
  if (hour === 12 && minute === 0) return "noon";
  return hour < 6 || hour >= 21 ? "at night" : hour < 12 ? "in the morning" : hour < 18 ? "in the afternoon" : "in the evening";
}

function fieldText(token, state, clock) {
  const { data } = state;
  const [year, month, day, hour, minute, second, millisecond, weekday] = clock;
  const named = (lists, position) => lists[[4, 3, 5].indexOf(token.length)].split("|")[position];
  switch (token[0]) {
    case "E": return ["weekday", (/[dyML]/.test(state.pattern) && named(data.dated, weekday)) || named(data.weekdays, weekday)];
    case "G": return ["era", (token.length === 4 ? ["Before Christ", "Anno Domini"] : token.length === 5 ? ["B", "A"] : ["BC", "AD"])[year > 0 ? 1 : 0]];
    case "y": return ["year", sized(year > 0 ? year : 1 - year, token)];
    case "M": return ["month", token.length < 3 ? sized(month, token) : named(data.months, month - 1)];
    case "L": return ["month", named(data.standalone, month - 1) ?? named(data.months, month - 1)];
    case "d": return ["day", sized(day, token)];
    case "h": return ["hour", sized(hour % 12 || 12, token)];
    case "K": return ["hour", sized(hour % 12, token)];
    case "H": return ["hour", sized(hour, token)];
    case "k": return ["hour", sized(hour || 24, token)];
    case "m": return ["minute", sized(minute, token)];
    case "s": return ["second", sized(second, token)];
    case "S": return ["fractionalSecond", StringOf(millisecond).padStart(3, "0").slice(0, token.length)];
    case "a": return ["dayPeriod", data.halves.split("|")[hour < 12 ? 0 : 1]];
    case "B": return ["dayPeriod", dayPeriodText(hour, minute, data.halves.split("|"))];
    default: return ["timeZoneName", zoneText(state, clock)];
  }
}

function dateParts(state, value) {
  const instant = instantOf(value);
  const clock = clockAt(instant, state.timeZone);
  // Today's names were not in use yet.
  if (instant < 0 && state.timeZone !== "UTC") clock.splice(10, 2, "", "");
  const parts = [];
  for (const token of state.pattern.match(/'[^']*'|([A-Za-z])\1*|[^A-Za-z']+/g)) {
    const isField = /^[A-Za-z]/.test(token);
    const [type, text] = isField ? fieldText(token, state, clock) : ["literal", token.replaceAll("'", "")];
    const last = parts[parts.length - 1];
    if (type === "literal" && last?.type === "literal") last.value += text;
    else parts.push({ type, value: text });
  }
  return parts;
}

const resolvedNames = { G: "era", y: "year", d: "day", h: "hour", K: "hour", H: "hour", k: "hour", m: "minute", s: "second" };

function resolvedDate(state) {
  const { locale, timeZone, dateStyle, timeStyle, fields, pattern, cycle } = state;
  const all = { locale, calendar: "gregory", numberingSystem: "latn", timeZone };
  const tokens = pattern.replace(/'[^']*'/g, "").match(/([A-Za-z])\1*/g) ?? [];
  if (tokens.some((token) => /[hHkK]/.test(token))) Object.assign(all, { hourCycle: cycle, hour12: countsToTwelve(state) });
  if (dateStyle !== undefined || timeStyle !== undefined) {
    return ObjectOf.fromEntries(entries({ ...all, dateStyle, timeStyle }).filter(([, value]) => value !== undefined));
  }
  const shown = { weekday: fields.weekday, era: fields.era };
  for (const token of tokens) {
    const name = resolvedNames[token[0]];
    if (name !== undefined && name !== "era") shown[name] = token.length === 2 ? "2-digit" : "numeric";
    if (/[ML]/.test(token)) shown.month = token.length > 2 ? fields.month : token.length === 2 ? "2-digit" : "numeric";
  }
  const order = ["weekday", "era", "year", "month", "day", "dayPeriod", "hour", "minute", "second", "fractionalSecondDigits", "timeZoneName"];
  for (const name of order) {
    const value = shown[name] ?? (["dayPeriod", "fractionalSecondDigits", "timeZoneName"].includes(name) ? fields[name] : undefined);
    if (value !== undefined) all[name] = value;
  }
  return all;
}

// Uses a plain space instead of the narrow one, which many date parsers do not know.
const dateText = (state, value) => joinParts(dateParts(state, value)).replaceAll("\u202f", " ");

intlClass("DateTimeFormat", (locales, options) => makeDateFormat(locales, options), {
  format: dateText,
  formatToParts: (state, value) => dateParts(state, value),
  // Both ends in full, joined by a dash; only one if they look the same.
  formatRange(state, start, end) {
    if (start === undefined || end === undefined) throw new WrongType("startDate or endDate cannot be undefined");
    const [from, to] = [dateText(state, start), dateText(state, end)];
    return from === to ? from : `${from}\u2009–\u2009${to}`;
  },
  resolvedOptions: resolvedDate,
}, { callable: true, bound: ["format"] });

const dateValue = DateOf.prototype.getTime;
function localDate(date, locales, options, wanted, otherwise) {
  const instant = apply(dateValue, date, []);
  const state = makeDateFormat(locales, options, wanted, otherwise);
  return NumberOf.isNaN(instant) ? "Invalid Date" : dateText(state, instant);
}
addHidden(DateOf.prototype, {
  toLocaleString(locales, options) {
    return localDate(this, locales, options, "any", "all");
  },
  toLocaleDateString(locales, options) {
    return localDate(this, locales, options, "date", "date");
  },
  toLocaleTimeString(locales, options) {
    return localDate(this, locales, options, "time", "time");
  },
});
