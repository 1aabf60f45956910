// attack: half a gigabyte in one call
// grants: none
// limits: memory=16
// expect: execute.memory
return "x".repeat(2 ** 29).length;
