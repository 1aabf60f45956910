// attack: data that nests deeper than the writer's stack
// grants: none
// expect: execute.stack
let list = [];
for (let i = 0; i < 100000; i++) list = [list];
return JSON.stringify(list);
