// attack: a pattern that nests deeper than its compiler's stack
// grants: none
// expect: execute.stack
return new RegExp("(?:".repeat(100000) + ")".repeat(100000)).test("");
