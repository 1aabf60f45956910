// attack: walk from every helper to a function constructor of another realm
// grants: none
// expect: returns []
const wrong = [];
const things = { fn: safety.parser.xml, page: safety.parser.html("<p>"), rows: safety.parser.csv("a"), url: new URL("http://a"), crypto: crypto.subtle, log: console.log, error: null };
try {
  safety.parser.xml("<");
} catch (error) {
  things.error = error;
}
for (const [name, thing] of Object.entries(things)) {
  const maker = thing.constructor.constructor;
  if (maker !== Function || maker("return typeof host + typeof process + typeof require")() !== "undefined".repeat(3)) wrong.push(name);
}
return wrong;
