// attack: double a text until flattening it takes half a gigabyte
// grants: none
// limits: memory=16
// expect: execute.memory
let rope = "x";
for (let i = 0; i < 29; i++) rope += rope;
return rope.indexOf("y");
