// attack: a pattern that a backtracking matcher never finishes, in the gateway itself
// grants: read,write
// expect: returns []
safety.fs.writeText("long.txt", "a".repeat(100000) + "!");
return safety.fs.grep("^(a+)+$", "long.txt");
