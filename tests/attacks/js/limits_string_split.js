// attack: a million little texts out of one
// grants: none
// limits: memory=16
// expect: execute.memory
return "ab".repeat(2000000).split("").length;
