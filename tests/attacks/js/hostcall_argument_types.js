// attack: symbols, objects and functions where text is wanted
// grants: read,fetch:strict
// expect: returns ["missing-url","missing-url","missing-url","invalid-argument","invalid-argument","invalid-argument","missing-args"]
const reason = (act) => {
  try {
    return act();
  } catch (error) {
    return error.reason ?? error.name;
  }
};
return [
  reason(() => fetch(Symbol("x"))), reason(() => fetch({ toString: () => "http://192.0.2.1/" })), reason(() => fetch()),
  reason(() => safety.fs.readText({ toString: () => "notes.txt" })), reason(() => safety.fs.readText(["notes.txt"])),
  reason(() => safety.fs.readText(Symbol("x"))), reason(() => safety.fs.readText(null)),
];
