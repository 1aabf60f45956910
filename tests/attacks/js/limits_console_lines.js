// attack: flood the log with lines
// grants: none
// expect: returns "done"
for (let i = 0; i < 5000; i++) console.log(i);
return "done";
