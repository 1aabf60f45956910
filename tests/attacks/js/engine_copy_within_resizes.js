// attack: shrink a resizable buffer while `copyWithin` converts its arguments
// grants: none
// expect: returns 16
const buffer = new ArrayBuffer(4096, { maxByteLength: 8192 });
const view = new Uint8Array(buffer);
try {
  view.copyWithin(0, { valueOf: () => (buffer.resize(16), 0) }, 4096);
} catch {}
return view.length;
