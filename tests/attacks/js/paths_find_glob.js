// attack: a glob that a backtracking matcher never finishes
// grants: read
// expect: returns []
return safety.fs.find(".", "*a".repeat(300) + "b");
