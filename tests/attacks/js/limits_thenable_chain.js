// attack: return a thenable that resolves to itself for ever
// grants: none
// limits: statements=2000
// expect: execute.statements
const self = { then(resolve) { resolve({ then: self.then }); } };
return self;
