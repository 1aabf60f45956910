// attack: exponential backtracking through equal alternatives
// grants: none
// limits: statements=2000
// expect: execute.statements
return /^(a|a|aa)*b$/.test("a".repeat(60));
