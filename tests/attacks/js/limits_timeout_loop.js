// attack: rearm a timer without end and without waiting
// grants: none
// limits: statements=2000
// expect: execute.statements
const rearm = () => setTimeout(rearm, 0);
rearm();
await new Promise(() => {});
