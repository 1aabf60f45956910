// attack: replace the built-ins that helpers use and collect the functions that pass through them
// grants: none
// expect: returns []
const caught = new Set();
const { add } = Set.prototype;
const { apply } = Reflect;
const note = (value) => { if (typeof value === "function") apply(add, caught, [value]); };
for (const prototype of [Array.prototype, String.prototype, RegExp.prototype, Map.prototype, Set.prototype, Promise.prototype, Function.prototype, Object.getPrototypeOf(Uint8Array.prototype)]) {
  for (const name of Object.getOwnPropertyNames(prototype)) {
    const own = Object.getOwnPropertyDescriptor(prototype, name);
    if (name === "constructor" || typeof own.value !== "function" || !own.writable) continue;
    const original = own.value;
    prototype[name] = function (...values) {
      for (let i = 0; i < values.length; i++) note(values[i]);
      note(this);
      return apply(original, this, values);
    };
  }
}
for (const act of [
  () => console.log([1], { a: 1 }, new Map([[1, 2]])), () => new URL("http://a/?b=c").searchParams.append("d", "e"),
  () => crypto.subtle.digest("SHA-256", [1, 2, 3]), () => safety.parser.html("<p class=a>b</p>").select("p.a").text(), () => structuredClone([new Map([[1, [2]]])]),
  () => new TextDecoder().decode(new TextEncoder().encode("x")), () => new Headers({ a: "b" }).get("a"), () => safety.parser.xml("<"), () => setTimeout(() => {}, 0),
]) {
  try {
    await act();
  } catch {}
}
const names = [];
for (const one of caught) if (one.name === "host" || one.name === "random") names[names.length] = one.name;
return names;
