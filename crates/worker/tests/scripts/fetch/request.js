// The request that the gateway receives. An echo replaces the gateway for the scripts in this directory.
const asked = (url, options) => fetch(url, options).json();
const plain = asked("https://example.com/a?b=c");
const full = asked(new URL("https://example.com/x"), {
  method: "patch", headers: { "X-One": " 1 ", Two: 2 }, body: "text", redirect: "manual", startIndex: 3, maxLength: 5,
});
const errors = [
  [() => fetch(), "INVALID_INPUT", "missing-url"],
  [() => fetch({ url: "https://example.com/" }), "INVALID_INPUT", "missing-url"],
  [() => fetch("https://example.com/", { redirect: "sometimes" }), "INVALID_INPUT", "invalid-request"],
  [() => fetch("https://example.com/", { startIndex: -1 }), "INVALID_INPUT", "invalid-option"],
  [() => fetch("https://example.com/", { maxLength: 1.5 }), "INVALID_INPUT", "invalid-option"],
  [() => fetch("https://example.com/", { signal: {} }), "INVALID_INPUT", "invalid-option"],
  [() => fetch("https://example.com/", { body: { a: 1 } }), "INVALID_INPUT", "unsupported-body"],
  [() => fetch("https://example.com/", { body: 7 }), "INVALID_INPUT", "unsupported-body"],
].filter(([act, kind, reason]) => {
  try { act(); return true; } catch (error) { return error.kind !== kind || error.helper !== "fetch" || error.reason !== reason; }
});
const same = (value, expected) => JSON.stringify(value) === JSON.stringify(expected) || [value, expected];
const told = [
  same(plain, { body: null, headers: [], maxLength: 0, method: "GET", redirect: "Follow", startIndex: 0, timeoutMs: 0, url: "https://example.com/a?b=c" }),
  same(full, {
    body: [116, 101, 120, 116], headers: [["X-One", "1"], ["Two", "2"]], maxLength: 5, method: "PATCH", redirect: "Manual", startIndex: 3,
    timeoutMs: 0, url: "https://example.com/x",
  }),
  same(asked("https://example.com/", { method: "Purge", redirect: "error" }).method, "Purge"),
  same(asked("https://example.com/", { redirect: "error" }).redirect, "Error"),
  same(errors.map(([act]) => `${act}`), []),
].filter((one) => one !== true);
return told.length ? told : true;
