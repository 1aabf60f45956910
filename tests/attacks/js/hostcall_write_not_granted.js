// attack: write with the right to read
// grants: read
// expect: execute.tool_failed
safety.fs.writeText("planted.txt", "x");
