// attack: run the stack out through a getter
// grants: none
// expect: execute.stack
const mirror = { get face() { return this.face; } };
return mirror.face;
