// attack: fill the heap with what stays reachable after the error
// grants: none
// limits: memory=16
// expect: execute.memory
globalThis.kept = new Set();
for (let n = 0; ; n++) globalThis.kept.add(`entry ${n} of very many`);
