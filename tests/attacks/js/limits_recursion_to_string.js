// attack: run the stack out through a conversion
// grants: none
// expect: execute.stack
const word = { toString: () => `${word}` };
return `${word}`;
