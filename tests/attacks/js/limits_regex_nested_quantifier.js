// attack: exponential backtracking in one built-in call
// grants: none
// limits: statements=2000
// expect: execute.statements
return /^(a+)+$/.test("a".repeat(40) + "!");
