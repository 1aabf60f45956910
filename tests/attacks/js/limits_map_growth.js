// attack: a map that grows without end
// grants: none
// limits: memory=16
// expect: execute.memory
const map = new Map();
for (let n = 0; ; n++) map.set(n, [n]);
