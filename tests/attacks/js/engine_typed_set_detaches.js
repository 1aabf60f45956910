// attack: take the memory away while a typed array is filled from a getter
// grants: none
// expect: returns 0
const target = new Uint8Array(64);
const source = { length: 64, get 0() { target.buffer.transfer(); return 1; } };
try {
  target.set(source);
} catch {}
return target.length;
