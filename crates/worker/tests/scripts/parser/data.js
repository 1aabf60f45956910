// expect: []
// XML, CSV and YAML are returned as plain data.
const checks = [];
const same = (found, expected) => { if (JSON.stringify(found) !== JSON.stringify(expected)) checks.push([expected, found]); };
same(safety.parser.xml("<a:r x='1'>t<b><![CDATA[<]]></b> u</a:r>"), { tag: "a:r", attrs: { x: "1" }, text: "t u", children: [{ tag: "b", attrs: {}, text: "<", children: [] }] });
same(safety.parser.csv("a,b\r\n1,\"x, y\"\r\n"), [["a", "b"], ["1", "x, y"]]);
same(safety.parser.csv("a;b\n1;2\n", { header: true, delimiter: ";" }), [{ a: "1", b: "2" }]);
same(safety.parser.csv("a\n1", {}), [["a"], ["1"]]);
same(safety.parser.yaml("a: [1, two, {b: true}]\nc: null"), { a: [1, "two", { b: true }], c: null });
const polluted = safety.parser.yaml("__proto__: {x: 1}");
same([Object.getPrototypeOf(polluted) === Object.prototype, {}.x], [true, undefined]);
// The engine can read and write the deepest nesting that the helpers allow.
const deep = safety.parser.xml("<a>".repeat(200) + "</a>".repeat(200));
same(JSON.stringify(deep).length > 5000, true);
const list = safety.parser.yaml("[".repeat(99) + "]".repeat(99));
same(JSON.stringify(list).length, 198);
const page = safety.parser.html("<div>".repeat(900) + "x");
same([page.text(), page.select("div").size(), page.html().length, page.select("div div div").last().parents().size()], ["x", 900, 40 + 900 * 11, 901]);
const refused = [
  ["safety.parser.html", "INVALID_INPUT", "missing-input", () => safety.parser.html()],
  ["safety.parser.xml", "INVALID_INPUT", "missing-input", () => safety.parser.xml(null)],
  ["safety.parser.csv", "INVALID_INPUT", "missing-input", () => safety.parser.csv(5)],
  ["safety.parser.yaml", "INVALID_INPUT", "missing-input", () => safety.parser.yaml({})],
  ["safety.parser.xml", "SECURITY", "doctype-refused", () => safety.parser.xml("<!DOCTYPE x><x/>")],
  ["safety.parser.xml", "HELPER_RUNTIME", "parse-failed", () => safety.parser.xml("<x>")],
  ["safety.parser.xml", "HELPER_RUNTIME", "parse-failed", () => safety.parser.xml("<a>".repeat(100000))],
  ["safety.parser.yaml", "HELPER_RUNTIME", "parse-failed", () => safety.parser.yaml("a: [")],
  ["safety.parser.html", "HELPER_RUNTIME", "too-deep", () => safety.parser.html("<div>".repeat(100000))],
  ["safety.parser.csv", "INVALID_INPUT", "invalid-delimiter", () => safety.parser.csv("a", { delimiter: "\"" })],
  ["safety.parser.html", "INVALID_INPUT", "out-of-bounds", () => safety.parser.html("").select("p").get(0)],
];
for (const [helper, kind, reason, run] of refused) {
  try {
    run();
    checks.push(["refused", helper, reason]);
  } catch (error) {
    same([error.helper, error.kind, error.reason], [helper, kind, reason]);
  }
}
return checks;
