// attack: more headers than any server takes
// grants: fetch:strict
// expect: throws INVALID_INPUT request-headers-too-large
fetch("http://192.0.2.1/", { headers: Array.from({ length: 200 }, (_, i) => [`x-${i}`, "y"]) });
