// attack: a header inside the address
// grants: fetch:strict
// expect: throws INVALID_INPUT invalid-url
fetch("http://192.0.2.1/\r\nX-Injected: yes");
