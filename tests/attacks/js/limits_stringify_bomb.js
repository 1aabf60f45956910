// attack: a small graph that is large once written down
// grants: none
// limits: memory=16
// expect: execute.memory
let bomb = "x".repeat(10000);
for (let i = 0; i < 20; i++) bomb = [bomb, bomb];
return JSON.stringify(bomb).length;
