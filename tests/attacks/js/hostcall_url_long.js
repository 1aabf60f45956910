// attack: an address longer than anybody reads
// grants: fetch:strict
// expect: throws INVALID_INPUT url-too-long
fetch("http://192.0.2.1/" + "a".repeat(20000));
