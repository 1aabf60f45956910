// With `leave`, leaves something in every place that outlives a function; without, it should find nothing of it. Both
// look with the same eyes: a mark that is not found by the call that left it could never be found by another.
const { defineProperty, freeze, getPrototypeOf, isExtensible, isFrozen, preventExtensions, setPrototypeOf } = Object;
const { apply } = Reflect;
const { setTimeout: later, setInterval: often } = globalThis;
const indirectly = eval;
const self = arguments.callee;
const planted = () => 7;
planted.left = 1;
const template = () => ((strings) => strings)`left`;
// Functions go on working: the prelude uses some of them in this call.
const replace = (holder, names) => {
  for (let i = 0; i < names.length; i += 1) {
    const original = holder[names[i]];
    holder[names[i]] = function (...values) { return apply(original, this, values); };
    holder[names[i]].left = 1;
  }
};
const isReplaced = (holder, names) => {
  for (let i = 0; i < names.length; i += 1) if (holder[names[i]]?.left !== 1) return false;
  return true;
};
const change = (what, holder, ...names) => [what, () => replace(holder, names), () => isReplaced(holder, names)];
const add = (what, holder) => [what, () => { holder.left = 1; }, () => Object.hasOwn(holder, "left")];
const WEB = ["atob", "structuredClone", "queueMicrotask", "setTimeout", "clearTimeout", "TextEncoder", "Headers", "AbortSignal"];

const marks = [
  // globals
  ["global", () => { globalThis.leftGlobal = 1; }, () => "leftGlobal" in globalThis],
  ["fixed global", () => defineProperty(globalThis, "leftFixed", { value: 1 }), () => "leftFixed" in globalThis],
  ["global with a getter", () => defineProperty(globalThis, "leftGetter", { get: planted }), () => globalThis.leftGetter === 7],
  ["var of another script", () => indirectly("var leftVar = 1"), () => "leftVar" in globalThis],
  ["removed global", () => delete globalThis.TextDecoder, () => !("TextDecoder" in globalThis)],
  ["the tool's own function", () => { self.left = 1; }, () => Object.hasOwn(self, "left")],
  // symbols
  ["registered symbol", () => { globalThis[Symbol.for("left")] = 1; }, () => Symbol.for("left") in globalThis],
  ["known symbol", () => defineProperty(Object, Symbol.hasInstance, { value: planted }), () => Object.hasOwn(Object, Symbol.hasInstance)],
  ["constructor Symbol", () => { Symbol.left = Symbol("left"); }, () => typeof Symbol.left === "symbol"],
  // weak references, caches
  ["weak reference", () => { Math.leftWeak = new WeakRef(globalThis); }, () => Math.leftWeak?.deref() === globalThis],
  ["weak map", () => { Math.leftMap = new WeakMap([[Reflect, 1]]); }, () => Math.leftMap?.get(Reflect) === 1],
  ["template of a place", () => { Math.leftSites = new WeakSet([template()]); }, () => Math.leftSites?.has(template()) === true],
  ["finalizer", () => {
    globalThis.leftByFinalizer = 0;
    globalThis.leftRegistry = new FinalizationRegistry(() => { globalThis.leftByFinalizer = 1; });
    leftRegistry.register({}, 1);
  }, () => globalThis.leftByFinalizer === 1],
  // regular expressions
  ["position of a pattern", () => { Math.leftPattern = /left/g; Math.leftPattern.test("left left"); }, () => Math.leftPattern?.lastIndex === 4],
  ["static of RegExp", () => { RegExp.$1 = "left"; }, () => RegExp.$1 === "left"],
  change("RegExp", RegExp.prototype, "exec", "test"),
  // prototypes and namespaces
  add("Object.prototype", Object.prototype),
  ["fixed property of Object.prototype", () => defineProperty(Object.prototype, "leftFixed", { value: 1 }), () => ({}).leftFixed === 1],
  ["setter of Object.prototype", () => defineProperty(Object.prototype, "leftSetter", { set() {} }), () => "leftSetter" in {}],
  change("Object", Object, "keys", "entries", "freeze", "assign"),
  change("Object.prototype.toString", Object.prototype, "toString", "valueOf"),
  change("Array.prototype", Array.prototype, "push", "map", "join", "slice"),
  change("Array", Array, "isArray", "from"),
  change("iterators", getPrototypeOf(getPrototypeOf([][Symbol.iterator]())), "map", "toArray"),
  ["above Array.prototype", () => setPrototypeOf(Array.prototype, { leftAbove: 1 }), () => [].leftAbove === 1],
  ["frozen Array.prototype", () => freeze(Array.prototype), () => isFrozen(Array.prototype)],
  change("String.prototype", String.prototype, "trim", "replace", "split", "at"),
  change("Number.prototype", Number.prototype, "toFixed", "toLocaleString"),
  change("Function.prototype", Function.prototype, "apply", "bind", "toString"),
  ["Function.prototype.call", () => { Function.prototype.call = null; }, () => Function.prototype.call === null],
  add("functions that are async", getPrototypeOf(async () => {})),
  add("generators", getPrototypeOf(function* () {})),
  add("typed arrays", getPrototypeOf(Uint8Array.prototype)),
  add("Map.prototype", Map.prototype),
  change("Reflect", Reflect, "apply", "ownKeys"),
  change("Error", Error, "isError"),
  ["limit of stack traces", () => { Error.stackTraceLimit = 1; }, () => Error.stackTraceLimit === 1],
  // clock, chance, data
  change("Date", Date, "now", "parse"),
  change("Date.prototype", Date.prototype, "getTime", "toISOString"),
  change("Math", Math, "random", "max"),
  change("JSON", JSON, "stringify", "parse"),
  change("performance", performance, "now"),
  // what the gateway adds
  change("console", console, "log", "error"),
  change("crypto", crypto, "randomUUID", "getRandomValues"),
  change("crypto.subtle", crypto.subtle, "digest"),
  ["fetch", () => { globalThis.fetch = planted; }, () => typeof fetch !== "undefined"],
  ["safety", () => { globalThis.safety = planted; }, () => safety.left === 1],
  change("Intl", Intl, "NumberFormat"),
  add("Intl.DateTimeFormat.prototype", Intl.DateTimeFormat.prototype),
  add("URL.prototype", URL.prototype),
  change("URLSearchParams.prototype", URLSearchParams.prototype, "append", "get"),
  change("functions of the web", globalThis, ...WEB),
  // what is not over yet
  ["timer", () => { globalThis.leftByTimer = 0; later(() => { globalThis.leftByTimer = 1; }, 0); }, () => globalThis.leftByTimer === 1],
  ["timer without end", () => often(() => { globalThis.leftByInterval = 1; }, 1), () => numberOfTimer > 1],
  ["promise without end", () => { globalThis.leftPromise = new Promise(() => {}); (async () => { await leftPromise; })(); }, () => "leftPromise" in globalThis],
  ["job", () => { globalThis.leftByJob = 0; (async () => { await 1; globalThis.leftByJob = 1; })(); }, () => globalThis.leftByJob === 1],
  change("Promise", Promise, "resolve", "all"),
  change("Promise.prototype", Promise.prototype, "then", "finally"),
  ["no more globals", () => preventExtensions(globalThis), () => !isExtensible(globalThis)],
];

if (leave) {
  console.log("left");
  for (let i = 0; i < marks.length; i += 1) marks[i][1]();
}
let numberOfTimer = 0;
await new Promise((done) => { numberOfTimer = later(done, 0); });
const found = [];
const absent = [];
for (let i = 0; i < marks.length; i += 1) {
  const list = marks[i][2]() ? found : absent;
  list[list.length] = marks[i][0];
}
return { wrong: leave ? absent : found, marks: marks.length };
