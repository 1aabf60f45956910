// Properties of a response.
const of = (path, options) => fetch(`https://example.com/${path}`, options);
const members = (r) => [r.status, r.ok, r.statusText, r.url, r.redirected, r.type, r.contentType, r.truncated, r.nextStartIndex];
const good = of("a");
const before = good.bodyUsed;
const twice = [good.text().length > 0, good.bodyUsed, good.text() === good.text()];
let failed;
try { of("nonsense").json(); } catch (error) { failed = [error.name, error.kind, error.helper, error.reason, error.message.startsWith("the answer is not JSON: ")]; }
const nonsense = of("nonsense");
const read = { text: (r) => r.text(), json: (r) => { try { r.json(); } catch {} }, bytes: (r) => r.bytes(), arrayBuffer: (r) => r.arrayBuffer() };
const used = Object.entries(read).map(([name, act]) => { const r = of("nonsense"); const first = r.bodyUsed; act(r); return `${name} ${first} ${r.bodyUsed}`; });
const cases = [
  [members(good), [200, true, "OK", "https://example.com/a", false, "basic", "application/json", false, null]],
  [members(of("status/404")), [404, false, "Not Found", "https://example.com/status/404", false, "basic", "application/json", false, null]],
  [members(of("status/299")).slice(0, 3), [299, true, ""]],
  [members(of("status/300")).slice(0, 3), [300, false, ""]],
  [members(of("status/503")).slice(0, 3), [503, false, "Service Unavailable"]],
  [members(of("redirects")).slice(3, 5), ["https://example.com/elsewhere", true]],
  [of("plain").contentType, null],
  [[before, ...twice], [false, true, true, true]],
  [failed, ["ToolError", "HELPER_RUNTIME", "fetch", "invalid-json", true]],
  [used, ["text false true", "json false true", "bytes false true", "arrayBuffer false true"]],
  [nonsense.text(), "no {json"],
  [Array.from(nonsense.bytes()), Array.from(new Uint8Array(nonsense.arrayBuffer()))],
  [nonsense.bytes() instanceof Uint8Array && nonsense.arrayBuffer() instanceof ArrayBuffer, true],
  // The requested page, and the start of the next one.
  [[of("digits", { startIndex: 2, maxLength: 3 })].map((r) => [r.text(), r.truncated, r.nextStartIndex])[0], ["234", true, 5]],
  [[of("digits", { startIndex: 7, maxLength: 3 })].map((r) => [r.text(), r.truncated, r.nextStartIndex])[0], ["789", false, null]],
  [[of("digits", { startIndex: 99 })].map((r) => [r.text(), r.truncated, r.nextStartIndex])[0], ["", false, null]],
  [good.headers.get("X-Many"), "a, b"],
  [good.headers.getSetCookie(), ["a=1; Path=/", "b=2"]],
];
const wrong = cases.filter(([value, expected]) => JSON.stringify(value) !== JSON.stringify(expected));
return wrong.length ? wrong : true;
