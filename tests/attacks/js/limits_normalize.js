// attack: a quadratic sort of combining marks in one call
// grants: none
// limits: statements=2000
// expect: execute.statements
return ("a" + "\u0315\u0300".repeat(100000)).normalize("NFD").length;
