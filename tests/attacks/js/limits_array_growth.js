// attack: a list that grows without end
// grants: none
// limits: memory=16
// expect: execute.memory
const list = [];
for (;;) list.push(list.length);
