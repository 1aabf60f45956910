// attack: have the server echo what others must not see
// grants: fetch:strict
// expect: throws SECURITY forbidden-method
fetch("http://192.0.2.1/", { method: "trAcE" });
