// attack: an address longer than the frame has room for
// grants: fetch:strict
// expect: throws INVALID_INPUT url-too-long
fetch("http://192.0.2.1/" + "a".repeat(100000));
