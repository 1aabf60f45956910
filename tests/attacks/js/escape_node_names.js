// attack: find a way out under its usual names
// grants: none
// expect: returns []
const names = [
  "process", "require", "module", "exports", "global", "Buffer", "Deno", "Bun", "window", "self", "Worker", "SharedWorker", "XMLHttpRequest", "WebSocket",
  "EventSource", "importScripts", "std", "os", "bjson", "scriptArgs", "print", "load", "gc", "Java", "Packages", "Polyglot", "Graal", "host", "OP", "hooks",
];
return names.filter((name) => name in globalThis);
