// attack: run the stack out, catch it, and see whether the engine still counts right
// grants: none
// expect: returns 5050
const deeper = () => 1 + deeper();
for (let i = 0; i < 20; i++) {
  try {
    deeper();
  } catch {}
}
let sum = 0;
for (let i = 1; i <= 100; i++) sum += i;
return sum;
