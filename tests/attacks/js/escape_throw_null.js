// attack: throw the value that the engine throws when it is out of memory
// grants: none
// expect: execute.tool_failed
throw null;
