// attack: await an async generator that never ends
// grants: none
// limits: statements=2000
// expect: execute.statements
async function* numbers() {
  for (let n = 0; ; n++) yield n;
}
let sum = 0;
for await (const n of numbers()) sum += n;
return sum;
