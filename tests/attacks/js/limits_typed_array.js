// attack: a gigabyte of zeros
// grants: none
// limits: memory=16
// expect: execute.memory
return new Uint8Array(2 ** 30).length;
