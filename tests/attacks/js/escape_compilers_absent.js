// attack: machine code or shared memory of one's own
// grants: none
// expect: returns ["undefined","undefined","undefined"]
return [typeof WebAssembly, typeof Atomics, typeof Worker];
