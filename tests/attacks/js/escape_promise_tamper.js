// attack: replace Promise and its methods so that the wrapper loses its result
// grants: none
// expect: returns "kept"
Promise.prototype.then = () => { throw new Error("then"); };
Promise.resolve = () => { throw new Error("resolve"); };
globalThis.Promise = class {};
return "kept";
