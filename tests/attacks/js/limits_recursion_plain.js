// attack: run the stack out
// grants: none
// expect: execute.stack
const deeper = () => 1 + deeper();
return deeper();
