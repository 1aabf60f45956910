// attack: ask for one field a thousand times
// grants: read,write
// expect: throws HELPER_RUNTIME result-too-large
safety.fs.writeText("wide.txt", "x".repeat(900000));
return safety.fs.cut("wide.txt", { fields: Array(1000).fill(1) }).length;
