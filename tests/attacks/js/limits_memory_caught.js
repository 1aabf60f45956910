// attack: catch being out of memory and fill the rest
// grants: none
// limits: memory=16 statements=20000
// expect: execute.memory|execute.statements
const kept = [];
let size = 2 ** 20;
for (;;) {
  try {
    kept.push(new ArrayBuffer(size));
  } catch {
    if (size > 1) size >>= 1;
  }
}
