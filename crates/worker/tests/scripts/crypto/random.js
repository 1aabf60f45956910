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
    return [error.name, error instanceof DOMException];
  }
};
const ids = new Set();
for (let count = 0; count < 100; count++) ids.add(crypto.randomUUID());
check("different", ids.size, 100);
check("shape", [...ids].every((id) => /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id)), true);

for (const Kind of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array]) {
  const array = new Kind(512);
  check(`${Kind.name} is returned`, crypto.getRandomValues(array) === array, true);
  // Every byte of an element is random: it is never zero in all 512 elements.
  const bytes = new Uint8Array(array.buffer);
  for (let offset = 0; offset < Kind.BYTES_PER_ELEMENT; offset++) {
    let any = 0;
    for (let at = offset; at < bytes.length; at += Kind.BYTES_PER_ELEMENT) any |= bytes[at];
    check(`${Kind.name} byte ${offset}`, any !== 0, true);
  }
}
check("wide values", crypto.getRandomValues(new Uint32Array(64)).some((value) => value > 255), true);

const part = new Uint8Array(64);
crypto.getRandomValues(part.subarray(16, 48));
check("only the view", [part.slice(0, 16).every((byte) => byte === 0), part.slice(48).every((byte) => byte === 0), part.slice(16, 48).some((byte) => byte !== 0)], [true, true, true]);
check("the most", crypto.getRandomValues(new Uint8Array(65536)).length, 65536);
check("none", crypto.getRandomValues(new Uint8Array(0)).length, 0);
check("too many", [fails(() => crypto.getRandomValues(new Uint8Array(65537))), fails(() => crypto.getRandomValues(new Uint32Array(16385)))], [["QuotaExceededError", true], ["QuotaExceededError", true]]);
for (const value of [new Float32Array(1), new Float64Array(1), new DataView(new ArrayBuffer(1)), new ArrayBuffer(1), [0, 0], {}, "x", null, undefined]) {
  check("wrong type", fails(() => crypto.getRandomValues(value)), ["TypeMismatchError", true]);
}
return wrong.length === 0 || wrong;
