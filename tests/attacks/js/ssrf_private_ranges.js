// attack: reach what is not the public internet
// grants: fetch:strict
// expect: returns []
const reached = [];
for (const host of [
  "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1", "192.0.0.1", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1",
  "255.255.255.255", "0.1.2.3", "[fc00::1]", "[fd12:3456::1]", "[fe80::1]", "[fec0::1]", "[ff02::1]", "[2001:db8::1]", "[2001::1]", "[2002:a00:1::]", "[64:ff9b::a00:1]", "[64:ff9b:1::1]",
  "[100::1]", "[3fff::1]", "[5f00::1]", "[4000::1]",
]) {
  try {
    fetch(`https://${host}/`);
    reached.push(host);
  } catch (error) {
    if (error.reason !== "literal-private-ip") reached.push(`${host}: ${error.reason}`);
  }
}
return reached;
