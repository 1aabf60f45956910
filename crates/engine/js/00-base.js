// Saves built-ins for the prelude before a tool can change them.
const {
  Array: ArrayOf, ArrayBuffer: Buffer, Error: BaseError, JSON: Json, Map: MapOf, Math: Maths, Number: NumberOf, Object: ObjectOf,
  Promise: PromiseOf, Reflect: Reflection, String: StringOf, Symbol: SymbolOf, TypeError: WrongType, Uint8Array: Bytes,
} = globalThis;
const { parse, stringify } = Json;
const { defineProperty, freeze, getPrototypeOf, hasOwn, keys, entries } = ObjectOf;
const { apply, deleteProperty } = Reflection;

// Shared memory can be used as a precise clock, and there is no second thread here.
delete globalThis.SharedArrayBuffer;

// Call sites expose functions, including internals of the prelude. Tools therefore cannot read the stack as objects.
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

// Makes a finished result awaitable, any number of times. `then` is hidden while a promise resolves with the value; otherwise the
// promise would call it again, endlessly.
function awaitable(value) {
  let hidden = 0;
  const unseen = (act) => {
    hidden += 1;
    try {
      return act();
    } finally {
      hidden -= 1;
    }
  };
  for (const name of ["then", "catch", "finally"]) {
    const method = function (...callbacks) {
      const promise = unseen(() => PromiseOf.resolve(value));
      const first = callbacks[0];
      if (name === "then" && typeof first === "function") callbacks[0] = (given) => unseen(() => first(given));
      return apply(promise[name], promise, callbacks);
    };
    defineProperty(value, name, { get: () => (hidden ? undefined : method), configurable: true, enumerable: false });
  }
  return value;
}

// Like `awaitable`, for data with foreign member names. Once awaited, the value is plain data and the methods are removed. Until
// then they are not enumerable, do not replace existing members, and can be overwritten.
function awaitableData(value) {
  if (typeof value !== "object" || value === null) return value;
  let awaited = false;
  const added = ["then", "catch", "finally"].filter((name) => !hasOwn(value, name));
  const settled = () => {
    // Members of frozen data cannot be removed, and a visible `then` would be called endlessly.
    awaited = true;
    for (const name of added) deleteProperty(value, name);
    added.length = 0;
    return PromiseOf.resolve(value);
  };
  for (const name of [...added]) {
    const method = function (...callbacks) {
      const promise = settled();
      return apply(promise[name], promise, callbacks);
    };
    const set = function (given) {
      const place = added.indexOf(name);
      if (this === value && place >= 0) added.splice(place, 1);
      defineProperty(this, name, { value: given, writable: true, configurable: true, enumerable: true });
    };
    defineProperty(value, name, { get: () => (awaited ? undefined : method), set, configurable: true, enumerable: false });
  }
  return value;
}
