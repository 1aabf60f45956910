// attack: shrink a resizable buffer under an iterator
// grants: none
// expect: returns 8
const buffer = new ArrayBuffer(4096, { maxByteLength: 8192 });
let seen = 0;
for (const byte of new Uint8Array(buffer)) {
  seen += 1 + byte;
  buffer.resize(8);
}
return seen;
