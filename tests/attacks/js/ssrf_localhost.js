// attack: reach this machine by its name
// grants: fetch:strict
// expect: returns []
const reached = [];
for (const host of ["localhost", "LOCALHOST", "localhost.", "l\u24deCalhost", "\uff4cocalhost"]) {
  try {
    fetch(`http://${host}:9/`);
    reached.push(host);
  } catch (error) {
    if (!["resolved-private-ip", "dns-resolution-failed", "dns-no-addresses"].includes(error.reason)) reached.push(`${host}: ${error.reason}`);
  }
}
return reached;
