// attack: a quadratic search in one call
// grants: none
// limits: statements=2000
// expect: execute.statements
return "a".repeat(400000).indexOf("a".repeat(200000) + "b");
