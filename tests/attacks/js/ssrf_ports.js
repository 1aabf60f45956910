// attack: speak to services of this machine on their ports
// grants: fetch:strict
// expect: returns []
const reached = [];
for (const port of [22, 25, 2375, 3306, 5432, 6379, 8080, 9200, 11211, 27017, 65535]) {
  try {
    fetch(`http://127.0.0.1:${port}/`);
    reached.push(port);
  } catch (error) {
    if (error.kind !== "SECURITY") reached.push(`${port}: ${error.reason}`);
  }
}
return reached;
