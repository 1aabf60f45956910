// attack: reach this machine by every spelling of its address
// grants: fetch:strict
// expect: returns []
const reached = [];
for (const host of [
  "127.0.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1", "127.000.000.001", "0", "0.0.0.0", "0x0", "127.255.255.254",
  "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "127.0.0.1.",
]) {
  try {
    fetch(`http://${host}/`);
    reached.push(host);
  } catch (error) {
    if (error.kind !== "SECURITY" || error.reason !== "literal-private-ip") reached.push(`${host}: ${error.reason}`);
  }
}
return reached;
