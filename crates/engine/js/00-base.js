// What the prelude keeps for itself before a tool can change it.
const {
  Array: ArrayOf, ArrayBuffer: Buffer, Error: BaseError, JSON: Json, Map: MapOf, Math: Maths, Number: NumberOf, Object: ObjectOf,
  Promise: PromiseOf, Reflect: Reflection, String: StringOf, Symbol: SymbolOf, TypeError: WrongType, Uint8Array: Bytes,
} = globalThis;
const { parse, stringify } = Json;
const { defineProperty, freeze, getPrototypeOf, keys, entries } = ObjectOf;
const { apply } = Reflection;

// Call sites hand out functions, and with them what the prelude keeps to itself: no tool looks at the stack as objects.
for (const name of ["prepareStackTrace", "captureStackTrace"]) {
  if (name in BaseError) defineProperty(BaseError, name, { value: undefined, writable: false, configurable: false });
}

// Adds globals as the platform does: writable, configurable, not enumerable.
function publish(members) {
  for (const name of keys(members)) {
    defineProperty(globalThis, name, { value: members[name], writable: true, configurable: true, enumerable: false });
  }
}

defineProperty(Maths, "random", { value: function () { return random(); }, writable: true, configurable: true, enumerable: false });

// A result that is there already and can be awaited all the same: `then` goes away the first time it is used, so that
// a promise resolved with the value does not ask it again.
function awaitable(value) {
  const settle = (name) => function (...callbacks) {
    for (const method of ["then", "catch", "finally"]) delete value[method];
    const promise = PromiseOf.resolve(value);
    return apply(promise[name], promise, callbacks);
  };
  for (const name of ["then", "catch", "finally"]) {
    defineProperty(value, name, { value: settle(name), writable: true, configurable: true, enumerable: false });
  }
  return value;
}
