// attack: keep the call alive with an interval
// grants: none
// limits: timeout=200 statements=100000000
// expect: execute.timeout
setInterval(() => {}, 0);
await new Promise(() => {});
