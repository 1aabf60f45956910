// attack: make the description of an error longer than the gateway takes, by way of the words of a helper's error
// grants: none
// expect: execute.tool_failed
try {
  atob("*");
} catch (error) {
  for (const name of ["name", "message", "stack", "kind", "helper", "reason"]) error[name] = "\x01".repeat(4000);
  throw error;
}
