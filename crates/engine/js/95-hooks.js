// What the glue calls: never reachable by a tool.
function wholeTextOf(value) {
  try {
    return StringOf(value);
  } catch {
    return "(a value that cannot be shown)";
  }
}

// For messages: the whole text, or its length. A part of it could be the beginning of a secret, which the gateway cannot mask.
function textOf(value, limit) {
  const text = wholeTextOf(value);
  return text.length > limit ? `(${text.length} characters)` : text;
}

// All of it together stays below what the gateway takes for an error, also where each character is written as six.
// The gateway takes a message or a stack of `LONG` characters for one that was cut off here (handlers/src/js/report.rs).
const LONG = 4000;
const SHORT = 200;

// Whatever was thrown, as JSON. Getters and proxies of the tool may interfere; then less is said.
function describe(thrown) {
  const beginningOf = (value) => wholeTextOf(value).slice(0, LONG);
  const read = (name, shown) => {
    try {
      const value = thrown[name];
      return value === undefined ? undefined : shown(value);
    } catch {
      return undefined;
    }
  };
  const short = (value) => textOf(value, SHORT);
  if ((typeof thrown !== "object" && typeof thrown !== "function") || thrown === null) {
    return stringify({ name: "Thrown", message: beginningOf(thrown) });
  }
  const isHelper = isHelperError(thrown);
  return stringify({
    name: read("name", short) ?? "Error",
    message: read("message", beginningOf) ?? beginningOf(thrown),
    stack: read("stack", beginningOf),
    kind: isHelper ? read("kind", short) : undefined,
    helper: isHelper ? read("helper", short) : undefined,
    reason: isHelper ? read("reason", short) : undefined,
  });
}

// A function's text, whatever the tool has made of `toString`.
const functionText = Function.prototype.toString;
const { indexOf: placeIn, startsWith } = StringOf.prototype;
const STRICT = '{"use strict";{';
function source(value) {
  if (typeof value !== "function") return undefined;
  const text = apply(functionText, value, []);
  const body = apply(placeIn, text, ["{"]);
  // The parenthesis before it, the names, and what opens the block that the code stands in.
  wrapperColumns = 1 + body + (apply(startsWith, text, [STRICT, body]) ? STRICT.length : 2);
  return text;
}

const hooks = { describe, refuse, tick, install, source };
