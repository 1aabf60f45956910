// attack: hosts that look like the allowed one to a careless matcher
// grants: fetch:allow=example.com
// expect: returns []
const reached = [];
for (const host of [
  "notexample.com", "sub.example.com", "example.co", "examplexcom.test", "example.com%2eevil.test", "evil.test%2fexample.com", "example.com:80.evil.test", "ex\u00e4mple.com", "\u0435xample.com",
  "example\u2024com.evil.test", "93.184.216.34", "[2606:2800:220:1::1]", "xn--example-com", "EXAMPLE.COM.evil.test",
]) {
  try {
    fetch(`http://${host}/`);
    reached.push(host);
  } catch (error) {
    if (!["host-not-in-allowlist", "invalid-url"].includes(error.reason)) reached.push(`${host}: ${error.reason}`);
  }
}
return reached;
