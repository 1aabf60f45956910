// attack: reverse an object that claims to be endless
// grants: none
// limits: statements=2000
// expect: execute.statements
return Array.prototype.reverse.call({ length: 2 ** 53 - 1 }).length;
