// Names are case-insensitive, values are joined by commas, cookies stay separate.
const h = new Headers({ "X-B": "2", a: " 1\t" });
h.append("A", "3");
h.append("Set-Cookie", "x=1");
h.append("set-cookie", "y=2");
const fails = (act) => { try { act(); return "did not"; } catch (error) { return error.constructor === TypeError; } };
const seen = [];
h.forEach(function (value, name, all) { seen.push(`${name}=${value}`, all === h, this.mark); }, { mark: 7 });
const set = new Headers([["a", "1"], ["a", "2"], ["b", "3"]]);
set.set("A", "4");
const removed = new Headers(set);
removed.delete("B");
const cases = [
  [h.get("a"), "1, 3"],
  [h.get("x-b"), "2"],
  [h.get("nothing"), null],
  [[h.has("X-b"), h.has("nothing")], [true, false]],
  [h.getSetCookie(), ["x=1", "y=2"]],
  [[...h], [["a", "1, 3"], ["set-cookie", "x=1"], ["set-cookie", "y=2"], ["x-b", "2"]]],
  [[...h.entries()].length, 4],
  [[...h.keys()], ["a", "set-cookie", "set-cookie", "x-b"]],
  [[...h.values()], ["1, 3", "x=1", "y=2", "2"]],
  [seen, ["a=1, 3", true, 7, "set-cookie=x=1", true, 7, "set-cookie=y=2", true, 7, "x-b=2", true, 7]],
  [[...set], [["a", "4"], ["b", "3"]]],
  [[...removed], [["a", "4"]]],
  [set.has("b"), true],
  [Object.fromEntries(new Map(Object.entries({ q: "r" })).entries().map(([k, v]) => [k, new Headers([[k, v]]).get(k)])), { q: "r" }],
  [[...new Headers(new Map([["m", "1"]]))], [["m", "1"]]],
  [[...new Headers()], []],
  [`${h}`, "[object Headers]"],
  [fails(() => h.append("a b", "1")), true],
  [fails(() => h.get("")), true],
  [fails(() => h.set("a", "1\r\nb: 2")), true],
  [fails(() => new Headers("a: 1")), true],
  [h.get("a"), "1, 3"],
];
const wrong = cases.filter(([value, expected]) => JSON.stringify(value) !== JSON.stringify(expected));
return wrong.length ? wrong : true;
