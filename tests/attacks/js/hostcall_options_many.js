// attack: more options than the frame has room for
// grants: read
// expect: execute.tool_failed
const options = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`o${i}`, 1]));
safety.fs.grep("hello", "notes.txt", options);
throw new Error("nothing was refused");
