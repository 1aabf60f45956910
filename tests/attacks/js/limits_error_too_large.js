// attack: flood the gateway with an error
// grants: none
// expect: execute.tool_failed
throw new Error("x".repeat(6000000));
