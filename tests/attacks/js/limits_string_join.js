// attack: a list of nothing, joined by something
// grants: none
// limits: memory=16
// expect: execute.memory
return Array(2 ** 27).join("abcdefgh").length;
