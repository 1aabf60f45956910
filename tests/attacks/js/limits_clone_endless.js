// attack: clone an object whose getter makes the next one
// grants: none
// limits: memory=16
// expect: execute.memory
const next = () => ({ get next() { return next(); } });
return structuredClone(next());
