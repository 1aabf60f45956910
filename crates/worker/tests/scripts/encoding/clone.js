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
check("primitives", [1, "a", true, null].map((value) => structuredClone(value)), [1, "a", true, null]);
check("others", [structuredClone(undefined) === undefined, structuredClone(10n) === 10n, Object.is(structuredClone(-0), -0), Number.isNaN(structuredClone(NaN))], [true, true, true, true]);

const source = { list: [1, [2]], deep: { text: "x" }, when: new Date(5), pattern: /a+/gi };
const copy = structuredClone(source);
check("data", copy, source);
check("apart", [copy !== source, copy.list !== source.list, copy.list[1] !== source.list[1], copy.when !== source.when], [true, true, true, true]);
check("kinds", [copy.when.getTime(), copy.pattern instanceof RegExp, copy.pattern.source, copy.pattern.flags], [5, true, "a+", "gi"]);

const ring = { name: "ring" };
ring.self = ring;
ring.items = [ring];
const rung = structuredClone(ring);
check("cycles", [rung !== ring, rung.self === rung, rung.items[0] === rung], [true, true, true]);
const twin = {};
const twins = structuredClone([twin, twin]);
check("same stays same", twins[0] === twins[1], true);

const map = structuredClone(new Map([["a", { b: 1 }], [twin, 2]]));
check("map", [map instanceof Map, map.size, map.get("a").b, map.has(twin)], [true, 2, 1, false]);
const set = structuredClone(new Set([1, "a", 1n]));
check("set", [set instanceof Set, set.size, set.has(1n)], [true, 3, true]);
const looped = new Map();
looped.set("me", looped);
const loopedCopy = structuredClone(looped);
check("map cycle", loopedCopy.get("me") === loopedCopy, true);

const bytes = new Uint8Array([1, 2, 3, 4]);
const both = structuredClone({ whole: bytes, part: new Uint16Array(bytes.buffer, 2, 1), view: new DataView(bytes.buffer, 1, 2), big: new BigInt64Array([5n]) });
both.whole[2] = 9;
check("shared buffer", [both.part.buffer === both.whole.buffer, both.part[0], both.view.getUint8(1), bytes[2], both.big[0] === 5n], [true, 0x0409, 9, 3, true]);

const error = structuredClone(new RangeError("far", { cause: { code: 7 } }));
check("error", [error instanceof RangeError, error.name, error.message, error.cause.code], [true, "RangeError", "far", 7]);
class Special extends Error {}
check("own error", structuredClone(new Special("s")) instanceof Special, false);

class Point {
  constructor() { this.x = 1; }
  get hidden() { return 2; }
}
const point = structuredClone(new Point());
check("instance", [point.constructor === Object, point, structuredClone({ get a() { return 3; } })], [true, { x: 1 }, { a: 3 }]);
const sparse = structuredClone([, 1]);
check("sparse", [sparse.length, 0 in sparse, sparse[1]], [2, false, 1]);
const named = structuredClone(JSON.parse('{"__proto__": {"x": 1}}'));
check("a key is no prototype", [Object.keys(named), named.x ?? null, Object.getPrototypeOf(named) === Object.prototype], [["__proto__"], null, true]);
check("wrappers", [structuredClone(new String("s")) instanceof String, structuredClone(Object(1n)) == 1n], [true, true]);

for (const value of [() => 1, Symbol("s"), { f() {} }, [Symbol.iterator], new WeakMap(), Promise.resolve(1), new URL("http://h/"), new Map([["f", Math.max]])]) {
  check("refused", fails(() => structuredClone(value)), "DataCloneError");
}
check("no value", fails(() => structuredClone()), "TypeError");

const moved = new Uint8Array([1, 2, 3]);
const target = structuredClone({ moved }, { transfer: [moved.buffer] });
check("transfer", [Array.from(target.moved), moved.length, moved.buffer.detached], [[1, 2, 3], 0, true]);
check("transferred before", fails(() => structuredClone(moved.buffer)), "DataCloneError");
const kept = new Uint8Array([1]);
check("nothing is lost", [fails(() => structuredClone({ kept, f() {} }, { transfer: [kept.buffer] })), kept[0]], ["DataCloneError", 1]);
check("transfer twice", fails(() => structuredClone(1, { transfer: [kept.buffer, kept.buffer] })), "DataCloneError");
check("transfer of data", fails(() => structuredClone(1, { transfer: [{}] })), "DataCloneError");

let nested = {};
for (let depth = 0; depth < 50000; depth++) nested = { nested };
let inner = structuredClone(nested), depth = 0;
while (inner.nested !== undefined) { inner = inner.nested; depth++; }
check("depth", depth, 50000);
return wrong.length === 0 || wrong;
