// attack: open a tunnel
// grants: fetch:strict
// expect: throws SECURITY forbidden-method
fetch("http://192.0.2.1/", { method: "CONNECT" });
