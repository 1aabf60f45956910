// attack: read the cloud's credentials with the network open, by any of its addresses
// grants: fetch:open
// expect: returns []
const reached = [];
for (const host of [
  "169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "[fd00:ec2::254]", "[::ffff:169.254.169.254]",
  "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "[::169.254.169.254]",
]) {
  try {
    fetch(`http://${host}/`);
    reached.push(host);
  } catch (error) {
    if (error.reason !== "metadata-endpoint") reached.push(`${host}: ${error.reason}`);
  }
}
return reached;
