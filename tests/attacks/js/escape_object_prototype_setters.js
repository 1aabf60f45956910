// attack: catch what helpers keep by setters on Object.prototype and Array.prototype
// grants: none
// expect: returns 0
let caught = null;
for (const name of ["host", "OP", "id", "callback", "kind", "describe", "install", "0", "1", "2"]) {
  for (const target of [Object.prototype, Array.prototype]) {
    Object.defineProperty(target, name, { configurable: true, set(value) { caught = { __proto__: null, value, before: caught }; }, get() { return undefined; } });
  }
}
for (const act of [() => new URL("http://a/?b=c").searchParams.get("b"), () => crypto.randomUUID(), () => safety.parser.csv("a,b\n1,2", { header: true }), () => setTimeout(() => {}, 0)]) {
  try {
    act();
  } catch {}
}
let reached = 0;
for (let one = caught; one !== null; one = one.before) if (typeof one.value === "function" && one.value.name === "host") reached++;
return reached;
