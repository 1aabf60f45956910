// attack: a pattern that is small to write and huge to compile
// grants: read
// expect: throws INVALID_INPUT grep-invalid-pattern
return safety.fs.grep("((a{500}){500}){500}", "notes.txt");
