// attack: read with the right to write
// grants: write
// expect: execute.tool_failed
return safety.fs.readText("notes.txt");
