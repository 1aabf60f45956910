// attack: take the memory away while `fill` converts its value
// grants: none
// expect: returns 0
const view = new Uint32Array(1024);
try {
  view.fill({ valueOf: () => (view.buffer.transfer(), 0x41414141) });
} catch {}
return view.length;
