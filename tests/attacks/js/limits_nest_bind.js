// attack: a function bound a hundred thousand times
// grants: none
// expect: execute.stack
let bound = () => 1;
for (let i = 0; i < 100000; i++) bound = bound.bind(null);
return bound();
