// attack: backtracking with a back reference, beyond the deadline
// grants: none
// limits: timeout=100 statements=100000000
// expect: execute.timeout
return /^(.+)+\1!$/.test("ab".repeat(40));
