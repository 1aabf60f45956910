// attack: never leave the job queue
// grants: none
// limits: statements=2000
// expect: execute.statements
const again = () => Promise.resolve().then(again);
again();
await new Promise(() => {});
