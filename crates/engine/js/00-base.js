// What the prelude keeps for itself before a tool can change it.
const {
  Array: ArrayOf, ArrayBuffer: Buffer, Error: BaseError, JSON: Json, Map: MapOf, Math: Maths, Number: NumberOf, Object: ObjectOf,
  Promise: PromiseOf, Reflect: Reflection, String: StringOf, Symbol: SymbolOf, TypeError: WrongType, Uint8Array: Bytes,
} = globalThis;
const { parse, stringify } = Json;
const { defineProperty, freeze, getPrototypeOf, hasOwn, keys, entries } = ObjectOf;
const { apply, deleteProperty } = Reflection;

// Memory that two threads could share is a clock, and there is no second thread here.
delete globalThis.SharedArrayBuffer;

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

// A result that is there already and can be awaited all the same, as often as one likes. `then` is out of sight while a
// promise is resolved with the value, or the promise would ask it again, and again.
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

// The same for data that somebody else named. Awaited, it is that data and nothing else: the methods go for good. Until
// then they are out of sight of all that lists members, a member of their name stays, and one that is set is set.
function awaitableData(value) {
  if (typeof value !== "object" || value === null) return value;
  let awaited = false;
  const added = ["then", "catch", "finally"].filter((name) => !hasOwn(value, name));
  const settled = () => {
    // Of frozen data nothing can be removed, and a `then` that is seen again would be asked for ever.
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
