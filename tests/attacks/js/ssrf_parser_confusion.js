// attack: addresses that two parsers read differently
// grants: fetch:strict
// expect: returns []
const reached = [];
for (const url of [
  "http://127.0.0.1\\@8.8.8.8/", "http://127.0.0.1#@8.8.8.8/", "http:/127.0.0.1/", "http:127.0.0.1/", "http:\\\\127.0.0.1\\", "HTTP://127.0.0.1/", "http:///127.0.0.1/", "http://127.0.0.1:80:80/", "http://[::1%25eth0]/",
  "http://127.0.0.1%00.example.com/", "http://127.0.0.1%20/", "http://exa mple.com/", "http://[127.0.0.1]/", "http://1.2.3.4.5/", "http://256.256.256.256/", "http://0x100000000/", "//127.0.0.1/", "127.0.0.1", "",
]) {
  try {
    fetch(url);
    reached.push(url);
  } catch (error) {
    if (!["literal-private-ip", "invalid-url", "missing-host", "userinfo-in-url"].includes(error.reason)) reached.push(`${url}: ${error.reason}`);
  }
}
return reached;
