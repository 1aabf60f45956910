// attack: hold a worker with a promise that nobody settles
// grants: none
// expect: execute.unsettled_promise
await new Promise(() => {});
