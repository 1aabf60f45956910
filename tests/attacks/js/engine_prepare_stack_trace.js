// attack: throw, recurse and lie while a stack trace is made
// grants: none
// expect: returns "survived"
Error.prepareStackTrace = (error, sites) => {
  sites.length = 2 ** 20;
  throw new Error("again");
};
try {
  null.x;
} catch {}
Error.stackTraceLimit = { valueOf() { throw new Error("limit"); } };
try {
  undefined.x;
} catch {}
Error.stackTraceLimit = Infinity;
try {
  Error.captureStackTrace(Object.freeze({}));
} catch {}
return "survived";
