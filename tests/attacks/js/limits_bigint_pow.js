// attack: quadratic arithmetic in one operator
// grants: none
// limits: statements=2000
// expect: execute.statements
return String(3n ** 600000n).length;
