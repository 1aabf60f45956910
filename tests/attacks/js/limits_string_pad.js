// attack: a quarter of a gigabyte of padding
// grants: none
// limits: memory=16
// expect: execute.memory
return "x".padEnd(2 ** 28, "yz").length;
