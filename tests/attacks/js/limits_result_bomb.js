// attack: let the gateway write the bomb down
// grants: none
// limits: memory=16
// expect: execute.memory|execute.not_data
let bomb = "x".repeat(10000);
for (let i = 0; i < 20; i++) bomb = [bomb, bomb];
return bomb;
