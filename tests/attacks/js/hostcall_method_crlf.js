// attack: a second request inside the method
// grants: fetch:strict
// expect: throws INVALID_INPUT invalid-method
fetch("http://192.0.2.1/", { method: "GET / HTTP/1.1\r\nHost: evil\r\n\r\nGET" });
