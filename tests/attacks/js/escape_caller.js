// attack: find the prelude's functions through `caller` and `arguments`
// grants: none
// expect: returns []
const seen = [];
function spy() {
  for (const read of [() => spy.caller, () => arguments.callee.caller, () => safety.parser.xml.caller, () => safety.parser.xml.arguments]) {
    try {
      const value = read();
      if (value !== null && value !== undefined) seen.push(typeof value);
    } catch {}
  }
}
new Headers([["a", "b"]]).forEach(spy);
new URLSearchParams("a=b").forEach(spy);
structuredClone({ get a() { spy(); return 1; } });
await new Promise((resolve) => setTimeout(() => { spy(); resolve(); }, 0));
return seen;
