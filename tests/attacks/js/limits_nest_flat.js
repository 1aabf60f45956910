// attack: flatten what is nested without end
// grants: none
// expect: execute.stack
let list = [];
for (let i = 0; i < 100000; i++) list = [list];
return list.flat(Infinity).length;
