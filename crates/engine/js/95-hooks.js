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

// Whatever was thrown, as JSON. Getters and proxies of the tool may interfere; then less is said.
function describe(thrown) {
  const read = (name) => {
    try {
      const value = thrown[name];
      return value === undefined ? undefined : textOf(value, 4000);
    } catch {
      return undefined;
    }
  };
  if ((typeof thrown !== "object" && typeof thrown !== "function") || thrown === null) {
    return stringify({ name: "Thrown", message: textOf(thrown, 4000) });
  }
  const isHelper = isHelperError(thrown);
  return stringify({
    name: read("name") ?? "Error",
    message: read("message") ?? textOf(thrown, 4000),
    stack: read("stack"),
    kind: isHelper ? read("kind") : undefined,
    helper: isHelper ? read("helper") : undefined,
    reason: isHelper ? read("reason") : undefined,
  });
}

// A function's text, whatever the tool has made of `toString`.
const functionText = Function.prototype.toString;
function source(value) {
  return typeof value === "function" ? apply(functionText, value, []) : undefined;
}

const hooks = { describe, refuse, tick, install, source };
