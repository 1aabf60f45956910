// Invalid locales, options and sizes throw, and the tool continues.
const thrown = (run) => {
  try {
    return run();
  } catch (error) {
    return error.reason ?? error.name;
  }
};
const long = "a".repeat(1 << 20);
const tries = [
  ["RangeError", () => new Intl.Collator("e")],
  ["RangeError", () => new Intl.Collator("en_US")],
  ["RangeError", () => new Intl.Collator("de-1996-1996")],
  ["RangeError", () => new Intl.Collator(`en-x-${"a".repeat(8)}${"-a".repeat(200)}`)],
  ["RangeError", () => new Intl.Collator("en", { sensitivity: "all" })],
  ["RangeError", () => new Intl.Collator("en", { usage: "find" })],
  ["RangeError", () => new Intl.Collator("en", { caseFirst: "none" })],
  ["TypeError", () => new Intl.Collator("en", null)],
  ["RangeError", () => "a".localeCompare("b", "*")],
  ["RangeError", () => "a".localeCompare("b", "de-1996-1996")],
  ["TypeError", () => "a".localeCompare(Symbol("b"))],
  ["text-too-long", () => long.localeCompare(`${long}b`)],
  [0, () => long.localeCompare(long)],
  [-1, () => "1".repeat(100000).localeCompare("1".repeat(100001), "en", { numeric: true })],
  ["RangeError", () => new Intl.Segmenter("en", { granularity: "line" })],
  ["RangeError", () => new Intl.Segmenter("../../etc")],
  ["RangeError", () => new Intl.Segmenter("de-1996-1996").segment("a")],
  ["TypeError", () => Intl.Segmenter("en")],
  ["TypeError", () => new Intl.Segmenter("en").segment(Symbol("a"))],
  ["TypeError", () => Intl.Segmenter.prototype.segment.call({}, "a")],
  ["TypeError", () => Object.getPrototypeOf(new Intl.Segmenter("en").segment("a")).containing.call({}, 0)],
  ["text-too-long", () => new Intl.Segmenter("en").segment(`${long}b`)],
  [1048575, () => new Intl.Segmenter("en").segment(long).containing(1048575).index],
  ["TypeError", () => new Intl.DisplayNames("en")],
  ["TypeError", () => new Intl.DisplayNames("en", {})],
  ["RangeError", () => new Intl.DisplayNames("en", { type: "planet" })],
  ["RangeError", () => new Intl.DisplayNames("en", { type: "region" }).of("USA")],
  ["RangeError", () => new Intl.DisplayNames("en", { type: "currency" }).of("E")],
  ["RangeError", () => new Intl.DisplayNames("en", { type: "language" }).of("en-u-kn")],
  ["RangeError", () => new Intl.DisplayNames("en", { type: "language" }).of("e\nregion US")],
];
const wrong = tries.filter(([expected, run]) => thrown(run) !== expected).map(([expected, run]) => [expected, String(run), String(thrown(run))]);
return wrong.length === 0 ? true : wrong;
