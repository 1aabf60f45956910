// attack: a proxy that lies about keys, prototypes and descriptors
// grants: none
// expect: returns "survived"
const liar = new Proxy(function () {}, {
  ownKeys: () => ["a", "a", Symbol.iterator, "length"],
  getOwnPropertyDescriptor: () => ({ value: 1, configurable: false }),
  has: () => true,
  construct: () => 1,
});
for (const act of [
  () => Object.keys(liar), () => ({ ...liar }), () => new liar(), () => JSON.stringify({ liar: Object.create(liar) }),
  () => liar instanceof liar, () => structuredClone({ liar }), () => Object.assign({}, liar), () => console.log(liar),
]) {
  try {
    act();
  } catch {}
}
return "survived";
