// Text, forms and bytes of every type.
const sent = (body, headers) => fetch("https://example.com/", { method: "POST", body, headers }).json();
const text = (body) => new TextDecoder().decode(Uint8Array.from(sent(body).body));
const FORM = "application/x-www-form-urlencoded;charset=UTF-8";
const bytes = Uint8Array.of(9, 1, 255, 0, 9);
const cases = [
  [text("grüße"), "grüße"],
  // A lone surrogate becomes U+FFFD, as on the web.
  [sent("a\ud800b").body, [97, 239, 191, 189, 98]],
  [text(""), ""],
  [sent("").body, []],
  [sent(undefined).body, null],
  [sent(null).body, null],
  [text(new URLSearchParams({ a: "1 2", b: "ü" })), "a=1+2&b=%C3%BC"],
  [sent(new URLSearchParams("a=1")).headers, [["content-type", FORM]]],
  [sent(new URLSearchParams("a=1"), { "Content-Type": "text/plain" }).headers, [["Content-Type", "text/plain"]]],
  [sent("a=1").headers, []],
  [sent(bytes).body, [9, 1, 255, 0, 9]],
  [sent(bytes.subarray(1, 4)).body, [1, 255, 0]],
  [sent(bytes.buffer).body, [9, 1, 255, 0, 9]],
  [sent(new DataView(bytes.buffer, 1, 2)).body, [1, 255]],
  [sent(Uint16Array.of(258)).body, [2, 1]],
  [sent([104, 105]).body, [104, 105]],
  // Signed bytes, as in the Java arrays of the reference.
  [sent([-1, 0]).body, [255, 0]],
];
const wrong = cases.filter(([value, expected]) => JSON.stringify(value) !== JSON.stringify(expected));
return wrong.length ? wrong : true;
