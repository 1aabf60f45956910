// attack: speak other protocols
// grants: fetch:open
// expect: returns []
const reached = [];
for (const url of [
  "ftp://127.0.0.1/", "gopher://127.0.0.1:6379/_FLUSHALL", "data:text/plain,hello", "javascript:alert(1)", "blob:http://a/b", "ws://127.0.0.1/", "wss://127.0.0.1/", "dict://127.0.0.1:11211/stats", "ldap://127.0.0.1/",
  "jar:http://127.0.0.1!/", "unix:/var/run/docker.sock", "http+unix://%2Fvar%2Frun%2Fdocker.sock/info", "view-source:http://127.0.0.1/", "about:blank", "tftp://127.0.0.1/x", "netdoc:///etc/passwd",
]) {
  try {
    fetch(url);
    reached.push(url);
  } catch (error) {
    if (error.reason !== "unsupported-scheme") reached.push(`${url}: ${error.reason}`);
  }
}
return reached;
