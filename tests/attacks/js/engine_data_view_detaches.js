// attack: take the memory away between the bounds check and the write
// grants: none
// expect: returns "TypeError"
const view = new DataView(new ArrayBuffer(16));
try {
  view.setUint32(0, { valueOf: () => (view.buffer.transfer(), 0x41414141) });
  return "written";
} catch (error) {
  return error.name;
}
