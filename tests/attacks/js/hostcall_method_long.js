// attack: a method longer than the frame has room for
// grants: fetch:strict
// expect: throws INVALID_INPUT invalid-method
fetch("http://192.0.2.1/", { method: "A".repeat(1000) });
