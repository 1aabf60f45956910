// attack: throw and resurrect in finalizers
// grants: none
// expect: returns "survived"
const registry = new FinalizationRegistry((held) => {
  globalThis.back = [globalThis.back, held.deref?.()];
  throw new Error("in a finalizer");
});
for (let i = 0; i < 2000; i++) {
  const thing = { i, cycle: null };
  thing.cycle = thing;
  registry.register(thing, new WeakRef({ i }), thing);
}
for (let i = 0; i < 10; i++) await null;
return "survived";
