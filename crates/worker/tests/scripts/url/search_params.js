// expect: true
const wrong = [];
const check = (name, found, expected) => {
  if (JSON.stringify(found) !== JSON.stringify(expected)) wrong.push([name, found, expected]);
};
const fails = (act) => {
  try {
    act();
    return "nothing thrown";
  } catch (error) {
    return error.name;
  }
};
const text = (init) => new URLSearchParams(init).toString();

check("nothing", [text(), text(""), text("?"), text("&&")], ["", "", "", ""]);
check("text", [text("?a=1&b=2"), text("a=1&a=2"), text("a"), text("a=b=c"), text("=v"), text("??a=1")], ["a=1&b=2", "a=1&a=2", "a=", "a=b%3Dc", "=v", "%3Fa=1"]);
check("pairs", [text([["a", "1"], ["b", 2]]), text(new Map([["x", "y"]])), text([])], ["a=1&b=2", "x=y", ""]);
check("record", [text({ a: 1, b: "x y", c: null, d: undefined }), text(Object.create(null))], ["a=1&b=x+y&c=null&d=undefined", ""]);
check("another", text(new URLSearchParams("a=1&b=2")), "a=1&b=2");
check("null", text(null), "null=");
check("pairs of three", [fails(() => text([["a", "b", "c"]])), fails(() => text([["a"]])), fails(() => text([1])), fails(() => text(["ab"]))], ["TypeError", "TypeError", "TypeError", "TypeError"]);

const all = new URLSearchParams("a=1+2&b=%20%2B&c=%C3%BC&d=%zz&e=%ff&f=100%&g=%E2%82&%41=x&h=+%+&i=%ef%bb%bfx");
check("decoded", Array.from(all), [["a", "1 2"], ["b", " +"], ["c", "ü"], ["d", "%zz"], ["e", "\ufffd"], ["f", "100%"], ["g", "\ufffd"], ["A", "x"], ["h", " % "], ["i", "\ufeffx"]]);
check("encoded", new URLSearchParams([["k", " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ü€😀\ud800\0\n"]]).toString(),
  "k=+%21%22%23%24%25%26%27%28%29*%2B%2C-.%2F%3A%3B%3C%3D%3E%3F%40%5B%5C%5D%5E_%60%7B%7C%7D%7E%C3%BC%E2%82%AC%F0%9F%98%80%EF%BF%BD%00%0A");

const params = new URLSearchParams("a=1&b=2&a=3&c=4&a=5");
check("get", [params.get("a"), params.get("z"), params.getAll("a"), params.getAll("z"), params.size], ["1", null, ["1", "3", "5"], [], 5]);
check("has", [params.has("a"), params.has("z"), params.has("a", "3"), params.has("a", "4"), params.has("a", undefined)], [true, false, true, false, true]);
params.set("a", "x");
check("set first", params.toString(), "a=x&b=2&c=4");
params.set("d", 5);
check("set new", params.toString(), "a=x&b=2&c=4&d=5");
params.append("a", "y");
params.delete("a", "x");
check("delete a value", params.toString(), "b=2&c=4&d=5&a=y");
params.delete("a");
params.delete("missing");
check("delete", params.toString(), "b=2&c=4&d=5");
check("too few arguments", [fails(() => params.get()), fails(() => params.set("a")), fails(() => params.append("a"))], ["TypeError", "TypeError", "TypeError"]);

const sorted = new URLSearchParams("z=1&ﬃ=2&🌈=3&a=4&z=0&a=5");
sorted.sort();
check("sorted by code units", Array.from(sorted), [["a", "4"], ["a", "5"], ["z", "1"], ["z", "0"], ["🌈", "3"], ["ﬃ", "2"]]);

check("iteration", [[...params.keys()], [...params.values()], [...params.entries()], [...params]],
  [["b", "c", "d"], ["2", "4", "5"], [["b", "2"], ["c", "4"], ["d", "5"]], [["b", "2"], ["c", "4"], ["d", "5"]]]);
const seen = [];
params.forEach(function (value, name, list) { seen.push(name + value + (list === params) + this.me); }, { me: 7 });
check("forEach", seen, ["b2true7", "c4true7", "d5true7"]);
const live = new URLSearchParams("a=1&b=2&c=3"), met = [];
for (const [name] of live) { met.push(name); if (name === "a") live.delete("b"); if (name === "c" && met.length < 4) live.append("d", "4"); }
check("live iteration", met, ["a", "c", "d"]);
check("an object of it", Object.fromEntries(new URLSearchParams("a=1&b=2")), { a: "1", b: "2" });
check("tag", Object.prototype.toString.call(params), "[object URLSearchParams]");

const url = new URL("http://h/p?a=1&b=%20#f");
const list = url.searchParams;
check("same list", url.searchParams === list, true);
list.append("c", "x y");
check("the URL follows", [url.search, url.href, `${url}`], ["?a=1&b=+&c=x+y", "http://h/p?a=1&b=+&c=x+y#f", "http://h/p?a=1&b=+&c=x+y#f"]);
url.search = "?n=1";
check("the list follows", [list.toString(), list.get("a")], ["n=1", null]);
url.href = "http://g/?m=2";
check("the list follows href", list.get("m"), "2");
list.set("m", "3");
url.hash = "x";
check("both", url.href, "http://g/?m=3#x");
list.delete("m");
check("no question mark is left", url.href, "http://g/#x");
list.append("z", "1");
list.sort();
url.searchParams.append("a", "'");
check("last", [url.href, url.pathname, list.size], ["http://g/?z=1&a=%27#x", "/", 2]);
const quiet = new URL("http://h/?a=~");
quiet.searchParams.get("a");
check("reading changes nothing", quiet.href, "http://h/?a=~");
const apart = new URLSearchParams(url.searchParams);
apart.append("q", "1");
check("a copy is apart", url.href, "http://g/?z=1&a=%27#x");
return wrong.length === 0 || wrong;
