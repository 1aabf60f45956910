// attack: pass a failure off as a limit of the gateway
// grants: none
// expect: execute.memory|execute.tool_failed
throw Object.assign(new Error("out of memory"), { name: "InternalError" });
