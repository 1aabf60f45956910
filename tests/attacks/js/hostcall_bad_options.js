// attack: numbers that are none, and modes that do not exist
// grants: fetch:strict
// expect: returns ["invalid-option","invalid-option","invalid-option","invalid-option","invalid-request","invalid-option"]
const reason = (options) => {
  try {
    return fetch("http://192.0.2.1/", options).status;
  } catch (error) {
    return error.reason ?? error.name;
  }
};
return [
  reason({ startIndex: -1 }), reason({ startIndex: 2 ** 53 }), reason({ maxLength: NaN }), reason({ maxLength: "1e999" }),
  reason({ redirect: "follow\0" }), reason({ signal: { aborted: false } }),
];
