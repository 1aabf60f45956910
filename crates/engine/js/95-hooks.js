// Hooks that the glue calls; tools cannot reach them.
function wholeTextOf(value) {
  try {
    return StringOf(value);
  } catch {
    return "(a value that cannot be shown)";
  }
}

// For messages: the whole text, or its length. The gateway could not redact the beginning of a secret.
function textOf(value, limit) {
  const text = wholeTextOf(value);
  return text.length > limit ? `(${text.length} characters)` : text;
}

// The total stays below the gateway's limit for an error, even if each character takes six bytes. The gateway treats a message or
// stack of `LONG` characters as truncated here (handlers/src/js/report.rs).
const LONG = 4000;
const SHORT = 200;

// Describes any thrown value as JSON. The tool's getters and proxies may interfere; the description is then shorter.
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

// The source text of a function, even if the tool replaced `toString`.
const functionText = Function.prototype.toString;
const { indexOf: placeIn, startsWith } = StringOf.prototype;
const STRICT = '{"use strict";{';
function source(value) {
  if (typeof value !== "function") return undefined;
  const text = apply(functionText, value, []);
  const body = apply(placeIn, text, ["{"]);
  // The parenthesis before it, the names, and the opening of the block around the code.
  wrapperColumns = 1 + body + (apply(startsWith, text, [STRICT, body]) ? STRICT.length : 2);
  return text;
}

const hooks = { describe, refuse, tick, install, source };
