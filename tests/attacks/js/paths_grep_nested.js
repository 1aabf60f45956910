// attack: a pattern that nests deeper than its parser's stack
// grants: read
// expect: throws INVALID_INPUT grep-invalid-pattern
return safety.fs.grep("(".repeat(2000) + ")".repeat(2000), "notes.txt");
