// attack: a host whose name begins with the allowed one
// grants: fetch:allow=example.com
// expect: throws SECURITY host-not-in-allowlist
fetch("http://example.com.evil.test/");
