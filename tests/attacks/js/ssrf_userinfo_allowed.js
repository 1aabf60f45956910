// attack: name the allowed host where it does not count
// grants: fetch:allow=example.com
// expect: returns ["userinfo-in-url","userinfo-in-url","host-not-in-allowlist","host-not-in-allowlist","host-not-in-allowlist","host-not-in-allowlist"]
return [
  "http://example.com@127.0.0.1/", "http://example.com:80@evil.test/", "http://evil.test#@example.com/", "http://evil.test\\@example.com/", "http://evil.test/?x=http://example.com", "http://evil.test:80#example.com",
].map((url) => {
  try {
    return fetch(url).status;
  } catch (error) {
    return error.reason;
  }
});
