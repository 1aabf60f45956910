// attack: let a helper do the work that statements are counted for
// grants: none
// limits: statements=2000
// expect: execute.statements
return safety.parser.html("<b>".repeat(100000)).select("b").size();
