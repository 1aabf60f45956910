// attack: compare long runs of digits, which takes the collation library quadratic time
// grants: none
// limits: statements=2000
// expect: execute.statements
return "1".repeat(130000).localeCompare("1".repeat(129999) + "2", "en", { numeric: true });
