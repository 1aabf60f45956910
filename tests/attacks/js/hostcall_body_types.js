// attack: a body that is silently dropped or read from memory that is gone
// grants: fetch:strict
// expect: returns ["unsupported-body","unsupported-body","unsupported-body","TypeError"]
const gone = new ArrayBuffer(16);
gone.transfer();
const reason = (body) => {
  try {
    return fetch("http://192.0.2.1/", { method: "POST", body }).status;
  } catch (error) {
    return error.reason ?? error.name;
  }
};
return [reason({ a: 1 }), reason(12), reason(Symbol("x")), reason(gone)];
