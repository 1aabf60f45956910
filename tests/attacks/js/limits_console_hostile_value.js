// attack: log values that loop, lie and throw while they are shown
// grants: none
// expect: returns "done"
const circle = {};
circle.self = circle;
const thorn = new Proxy({}, { ownKeys() { throw new Error("no"); }, get() { throw new Error("no"); } });
console.log(circle, thorn, { get x() { throw 1; } }, Symbol("s"), 10n, Object.create(null), new Array(1e6));
return "done";
