// attack: an option longer than the frame has room for
// grants: read
// expect: execute.tool_failed
return safety.fs.grep("x", "notes.txt", { limit: "9".repeat(70000) });
