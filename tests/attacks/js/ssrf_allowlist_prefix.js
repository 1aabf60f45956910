// attack: a host whose name ends with the allowed one
// grants: fetch:allow=example.com
// expect: throws SECURITY host-not-in-allowlist
fetch("http://evil-example.com/");
