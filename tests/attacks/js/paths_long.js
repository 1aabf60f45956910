// attack: a path longer than the kernel takes
// grants: read
// expect: throws INVALID_INPUT invalid-path
return safety.fs.readText("a/".repeat(5000) + "notes.txt");
