// `console`: lines for the author. Each line is stringified here and kept by the host, up to its limits.
// The number of columns of the first line that belong to the wrapper; set when a tool is loaded.
let wrapperColumns = 0;

// Converts a stack to the author's columns, as in reports. Frames of the prelude and the engine are removed.
function authorsFrames(stack) {
  const frames = `${stack}`.split("\n").filter((frame) => !/\((?:prelude\.js:\d+:\d+|native)\)$/.test(frame));
  const inColumns = (_, column) => `(tool.js:1:${Maths.max(column - wrapperColumns, 1)})`;
  return frames.map((frame) => frame.replace(/\(tool\.js:1:(\d+)\)$/, inColumns)).join("\n");
}

function shown(value, depth, seen) {
  switch (typeof value) {
    case "string": return depth === 0 ? value : stringify(value);
    case "bigint": return `${value}n`;
    case "symbol": case "undefined": case "number": case "boolean": return StringOf(value);
    case "function": return `[function ${value.name || "anonymous"}]`;
  }
  if (value === null) return "null";
  if (value instanceof BaseError) return value.stack ? `${value.name}: ${value.message}\n${authorsFrames(value.stack)}`.trimEnd() : StringOf(value);
  if (seen.includes(value)) return "[circular]";
  if (depth > 4) return ArrayOf.isArray(value) ? "[…]" : "{…}";
  const inner = [...seen, value];
  if (ArrayOf.isArray(value)) return `[${value.slice(0, 100).map((item) => shown(item, depth + 1, inner)).join(", ")}${value.length > 100 ? ", …" : ""}]`;
  if (value instanceof Date) return isNaN(value) ? "Invalid Date" : value.toISOString();
  if (value instanceof RegExp) return StringOf(value);
  if (value instanceof MapOf) return `Map ${shown([...value], depth + 1, inner)}`;
  if (value instanceof Set) return `Set ${shown([...value], depth + 1, inner)}`;
  if (ArrayBuffer.isView(value)) return `${value.constructor.name} ${shown(ArrayOf.from(value), depth + 1, inner)}`;
  const members = keys(value).slice(0, 100).map((key) => `${key}: ${shown(value[key], depth + 1, inner)}`);
  return members.length ? `{ ${members.join(", ")} }` : "{}";
}

function logger(letter) {
  return function (...values) {
    let line;
    try {
      line = values.map((value) => shown(value, 0, [])).join(" ");
    } catch (error) {
      line = `(a value that cannot be shown: ${error})`;
    }
    host(OP.CONSOLE, letter + line);
  };
}

publish({ console: { log: logger("l"), info: logger("i"), warn: logger("w"), error: logger("e"), debug: logger("d"), trace: logger("d") } });
