// attack: a result that nests deeper than the gateway's own parser
// grants: none
// expect: execute.not_data
let list = [];
for (let i = 0; i < 300; i++) list = [list];
return list;
