// expect: true
const wrong = [];
const check = (name, found, expected) => {
  if (JSON.stringify(found) !== JSON.stringify(expected)) wrong.push([name, found, expected]);
};
const fails = (act) => {
  try {
    act();
    return "nothing thrown";
  } catch (error) {
    return [error instanceof TypeError, error.name, error.kind ?? null, error.helper ?? null, error.reason ?? null];
  }
};
const parts = (url) => [url.href, url.protocol, url.username, url.password, url.host, url.hostname, url.port, url.pathname, url.search, url.hash, url.origin];

check("all parts", parts(new URL("HTTPS://u:p%40@Example.com:8080/a/./b?c=d#e")),
  ["https://u:p%40@example.com:8080/a/b?c=d#e", "https:", "u", "p%40", "example.com:8080", "example.com", "8080", "/a/b", "?c=d", "#e", "https://example.com:8080"]);
check("least parts", parts(new URL("mailto:a@b")), ["mailto:a@b", "mailto:", "", "", "", "", "", "a@b", "", "", "null"]);
check("default port", [new URL("http://h:80/").port, new URL("http://h:80/").host], ["", "h"]);
check("empty query and hash", [new URL("http://h/?#").search, new URL("http://h/?#").hash, new URL("http://h/?#").href], ["", "", "http://h/?#"]);
check("base", [new URL("../x?y", "http://h/a/b/c").href, new URL("//g", new URL("https://h")).href, new URL("#f", "http://h/a?b").href], ["http://h/a/x?y", "https://g/", "http://h/a?b#f"]);
check("origins", ["blob:https://h/1", "file:///a", "ws://h:80", "foo://h"].map((text) => new URL(text).origin), ["https://h", "null", "ws://h", "null"]);
check("names", [new URL("http://münchen.de/ü").href, new URL("http://0x7f.1/").hostname, new URL("http://[::FFFF:1.2.3.4]/").hostname], ["http://xn--mnchen-3ya.de/%C3%BC", "127.0.0.1", "[::ffff:102:304]"]);
check("half a pair", new URL("http://h/\ud800").pathname, "/%EF%BF%BD");
check("text", [`${new URL("http://h")}`, JSON.stringify({ url: new URL("http://h") }), Object.prototype.toString.call(new URL("http://h"))], ["http://h/", '{"url":"http://h/"}', "[object URL]"]);

const invalid = [true, "TypeError", "INVALID_INPUT", "URL", "invalid-url"];
for (const input of ["", "nope", "/relative", "http://", "http://a b/", "http://h:99999", "http://[::1", "http://256.1.1.1/"]) check(`invalid ${input}`, fails(() => new URL(input)), invalid);
check("invalid base", fails(() => new URL("a", "nope")), invalid);
check("opaque base", fails(() => new URL("a", "mailto:x")), invalid);
check("no argument", fails(() => new URL()).slice(0, 2), [true, "TypeError"]);
check("not a constructor call", fails(() => URL("http://h")).slice(0, 2), [true, "TypeError"]);
check("too long", fails(() => new URL("http://h/" + "a".repeat(1 << 16)))[4], "invalid-url");
check("canParse", [URL.canParse("http://h"), URL.canParse("h"), URL.canParse("h", "http://b"), URL.canParse("h", "b")], [true, false, true, false]);
check("parse", [URL.parse("http://h").href, URL.parse("h"), URL.parse("h", "http://b/").href], ["http://h/", null, "http://b/h"]);

const url = new URL("http://h/p");
for (const [part, value, expected] of [
  ["protocol", "https", "https://h/p"],
  ["username", "me", "https://me@h/p"],
  ["password", "a b", "https://me:a%20b@h/p"],
  ["host", "x:81", "https://me:a%20b@x:81/p"],
  ["hostname", "y", "https://me:a%20b@y:81/p"],
  ["port", "443", "https://me:a%20b@y/p"],
  ["port", "82", "https://me:a%20b@y:82/p"],
  ["port", "nonsense", "https://me:a%20b@y:82/p"],
  ["host", "a b", "https://me:a%20b@y:82/p"],
  ["pathname", "/a/../b c", "https://me:a%20b@y:82/b%20c"],
  ["search", "q=1", "https://me:a%20b@y:82/b%20c?q=1"],
  ["hash", "#f", "https://me:a%20b@y:82/b%20c?q=1#f"],
  ["protocol", "mailto", "https://me:a%20b@y:82/b%20c?q=1#f"],
  ["search", "", "https://me:a%20b@y:82/b%20c#f"],
  ["hash", "", "https://me:a%20b@y:82/b%20c"],
  ["href", "ftp://z/", "ftp://z/"],
]) {
  url[part] = value;
  check(`${part} = ${value}`, url.href, expected);
}
check("invalid href", [fails(() => { url.href = "nope"; }), url.href], [invalid, "ftp://z/"]);
try {
  url.origin = "x";
} catch (error) {
  check("read-only", error instanceof TypeError, true);
}
check("origin stays", url.origin, "ftp://z");
return wrong.length === 0 || wrong;
