// attack: spell the address with letters that are only later taken for digits and dots
// grants: fetch:strict
// expect: returns []
const reached = [];
for (const host of ["\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021", "127\uff0e0\uff0e0\uff0e1", "\u2460\u2461\u2466.0.0.1", "127%2e0%2e0%2e1", "%31%32%37.0.0.1", "\u{1d7cf}\u{1d7d0}\u{1d7d5}.0.0.1"]) {
  try {
    fetch(`http://${host}/`);
    reached.push(host);
  } catch (error) {
    if (error.reason !== "literal-private-ip") reached.push(`${host}: ${error.reason}`);
  }
}
return reached;
