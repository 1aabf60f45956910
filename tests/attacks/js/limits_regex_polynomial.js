// attack: a pattern without nesting that is still of the fourth power
// grants: none
// limits: statements=2000
// expect: execute.statements
return /\s*\s*\s*\s*x/.test(" ".repeat(3000));
