// Invalid dates, zones, locales and options throw the platform's own errors.
const thrown = (run) => {
  try {
    return run();
  } catch (error) {
    return error.name;
  }
};
const tries = [
  ["RangeError", () => new Intl.DateTimeFormat("en", { timeZone: "Mars/Olympus" })],
  ["RangeError", () => new Intl.DateTimeFormat("en", { timeZone: "" })],
  ["RangeError", () => new Intl.DateTimeFormat("en", { timeZone: "*" })],
  ["RangeError", () => new Intl.DateTimeFormat("en", { timeZone: "../../etc/localtime" })],
  ["RangeError", () => new Intl.DateTimeFormat("en", { year: "2" })],
  ["RangeError", () => new Intl.DateTimeFormat("en", { hourCycle: "h25" })],
  ["RangeError", () => new Intl.DateTimeFormat("en", { fractionalSecondDigits: 4 })],
  ["RangeError", () => new Intl.DateTimeFormat("en", { dateStyle: "tiny" })],
  ["TypeError", () => new Intl.DateTimeFormat("en", { dateStyle: "full", year: "numeric" })],
  ["TypeError", () => new Intl.DateTimeFormat("en", null)],
  ["TypeError", () => new Date(0).toLocaleDateString("en", { timeStyle: "short" })],
  ["TypeError", () => new Date(0).toLocaleTimeString("en", { dateStyle: "short" })],
  ["RangeError", () => new Intl.DateTimeFormat("en").format(NaN)],
  ["RangeError", () => new Intl.DateTimeFormat("en").format(8.64e15 + 1)],
  ["RangeError", () => new Intl.DateTimeFormat("en").formatToParts(new Date("no date"))],
  ["Invalid Date", () => new Date(NaN).toLocaleString()],
  ["RangeError", () => Intl.getCanonicalLocales("en_US")],
  ["RangeError", () => new Intl.NumberFormat("e")],
  ["TypeError", () => Intl.getCanonicalLocales([7])],
  ["TypeError", () => Intl.getCanonicalLocales(null)],
  ["RangeError", () => (1).toLocaleString("en", { style: "currency", currency: "US" })],
  ["TypeError", () => (1).toLocaleString("en", { style: "currency" })],
  ["RangeError", () => (1).toLocaleString("en", { maximumFractionDigits: 101 })],
  ["RangeError", () => (1).toLocaleString("en", { minimumFractionDigits: 3, maximumFractionDigits: 1 })],
  ["RangeError", () => (1).toLocaleString("en", { style: "unit", unit: "parsnip" })],
  ["TypeError", () => Intl.Collator.prototype.compare],
  ["TypeError", () => Intl.DateTimeFormat.prototype.formatToParts.call({})],
  ["TypeError", () => Intl.PluralRules("en")],
  ["RangeError", () => new Intl.RelativeTimeFormat("en").format(1, "parsec")],
  ["RangeError", () => new Intl.RelativeTimeFormat("en").format(Infinity, "day")],
  ["TypeError", () => new Intl.ListFormat("en").format([1])],
  ["RangeError", () => Intl.supportedValuesOf("tool")],
];
const wrong = tries.filter(([expected, run]) => thrown(run) !== expected).map(([expected, run]) => [expected, String(run), String(thrown(run))]);
return wrong.length === 0 ? true : wrong;
