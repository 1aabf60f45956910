// attack: hide the real host behind a user name
// grants: fetch:strict
// expect: throws SECURITY userinfo-in-url
fetch("http://example.com@127.0.0.1/");
