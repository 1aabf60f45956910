// attack: sort four thousand million holes
// grants: none
// limits: statements=2000
// expect: execute.statements
return new Array(4294967295).sort().length;
