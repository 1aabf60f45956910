// attack: a body larger than is ever sent
// grants: fetch:strict
// expect: throws INVALID_INPUT request-body-too-large
fetch("http://192.0.2.1/", { method: "POST", body: new Uint8Array(11 * 2 ** 20) });
