// attack: hold a worker asleep for weeks
// grants: none
// limits: timeout=100
// expect: execute.timeout
await new Promise((resolve) => setTimeout(resolve, 2 ** 31));
