// attack: a short text that replacing blows up
// grants: none
// limits: memory=16
// expect: execute.memory
return "a".repeat(100000).replaceAll("a", "b".repeat(10000)).length;
