// expect: ["undefined","undefined","undefined","undefined","undefined","undefined"]
return [typeof Temporal, typeof WebAssembly, typeof SharedArrayBuffer, typeof Atomics, typeof process, typeof require];
