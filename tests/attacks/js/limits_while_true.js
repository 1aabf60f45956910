// attack: burn the processor for ever
// grants: none
// limits: statements=2000
// expect: execute.statements
while (true);
