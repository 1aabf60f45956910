// attack: flood the log with bytes
// grants: none
// expect: returns "done"
const line = "x".repeat(1000000);
for (let i = 0; i < 10; i++) console.error(line);
return "done";
