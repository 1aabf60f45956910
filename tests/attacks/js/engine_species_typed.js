// attack: let `map` and `slice` write to a typed array that is too small, or shares its memory
// grants: none
// expect: returns [0,0,0,0]
const witness = new Uint8Array(4);
const small = [new Uint8Array(1), new Uint8Array(new ArrayBuffer(0)), witness.subarray(4)];
for (const made of small) {
  const sly = new Uint8Array(64).fill(0x41);
  sly.constructor = { [Symbol.species]: function () { return made; } };
  for (const act of ["map", "slice", "filter", "subarray"]) {
    try {
      sly[act](() => 0x41);
    } catch {}
  }
}
return [...witness];
