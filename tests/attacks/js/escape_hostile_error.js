// attack: an error whose every property fights back
// grants: none
// expect: execute.tool_failed
throw new Proxy(new Error("x"), {
  get() { throw new Error("get"); },
  getPrototypeOf() { throw new Error("prototype"); },
});
