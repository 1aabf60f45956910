// attack: pollute Object.prototype through the keys of parsed data
// grants: none
// expect: returns []
const found = [];
const inputs = {
  json: () => structuredClone(JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')),
  yaml: () => safety.parser.yaml("__proto__: {polluted: 1}\nconstructor: {prototype: {polluted: 1}}"),
  csv: () => safety.parser.csv("__proto__,constructor\npolluted,polluted", { header: true }),
  xml: () => safety.parser.xml('<a __proto__="polluted"><__proto__/></a>'),
  html: () => safety.parser.html('<a __proto__=polluted>x</a>').select("a").first().attr("__proto__"),
  form: () => new URLSearchParams("__proto__=polluted&__proto__[polluted]=1").toString(),
  headers: () => [...new Headers(JSON.parse('{"__proto__":"polluted"}'))],
};
for (const [name, act] of Object.entries(inputs)) {
  try {
    act();
  } catch {}
  if (({}).polluted !== undefined || Object.prototype.polluted !== undefined || ({}).constructor !== Object) found.push(name);
}
return found;
