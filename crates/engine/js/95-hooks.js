// What the glue calls: never reachable by a tool.
function textOf(value, limit) {
  let text;
  try {
    text = StringOf(value);
  } catch {
    text = "(a value that cannot be shown)";
  }
  return text.length > limit ? text.slice(0, limit) + "…" : text;
}

// All of it together stays below what the gateway takes for an error, also where each character is written as six.
const LONG = 4000;
const SHORT = 200;

// Whatever was thrown, as JSON. Getters and proxies of the tool may interfere; then less is said.
function describe(thrown) {
  const read = (name, limit) => {
    try {
      const value = thrown[name];
      return value === undefined ? undefined : textOf(value, limit);
    } catch {
      return undefined;
    }
  };
  if ((typeof thrown !== "object" && typeof thrown !== "function") || thrown === null) {
    return stringify({ name: "Thrown", message: textOf(thrown, LONG) });
  }
  const isHelper = isHelperError(thrown);
  return stringify({
    name: read("name", LONG) ?? "Error",
    message: read("message", LONG) ?? textOf(thrown, LONG),
    stack: read("stack", LONG),
    kind: isHelper ? read("kind", SHORT) : undefined,
    helper: isHelper ? read("helper", SHORT) : undefined,
    reason: isHelper ? read("reason", SHORT) : undefined,
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
