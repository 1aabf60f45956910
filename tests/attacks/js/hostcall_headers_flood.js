// attack: more headers than the frame has room for
// grants: fetch:strict
// expect: throws INVALID_INPUT request-headers-too-large
fetch("http://192.0.2.1/", { headers: Array.from({ length: 1100 }, (_, i) => [`x-${i}`, "y"]) });
