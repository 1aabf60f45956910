// attack: many buffers of a size that each would fit
// grants: none
// limits: memory=16
// expect: execute.memory
const kept = [];
for (;;) kept.push(new ArrayBuffer(2 ** 20));
