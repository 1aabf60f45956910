// attack: with the host function in hand, ask for a file and an address that nobody granted
// grants: none
// expect: returns ["refused","refused"]
let host;
Error.prepareStackTrace = (error, sites) => {
  for (const site of sites) if (site.getFunctionName() === "host") host = site.getFunction();
  return "";
};
try {
  safety.parser.xml("<");
} catch {}
Error.prepareStackTrace = undefined;
const attempt = (op, wish) => {
  try {
    return host(op, JSON.stringify(wish), new Uint8Array(0));
  } catch {
    return "refused";
  }
};
return [
  attempt(110, { function: "readText", arguments: ["/etc/hostname"], options: [] }),
  attempt(100, { method: "GET", url: "http://127.0.0.1/", headers: [], hasBody: false, redirect: "follow", timeoutMs: 0, startIndex: 0, maxLength: 0 }),
];
