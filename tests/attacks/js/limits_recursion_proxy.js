// attack: run the stack out through a proxy of itself
// grants: none
// expect: execute.stack
const mirror = new Proxy({}, { get: (target, key, receiver) => receiver[key] });
return mirror.face;
