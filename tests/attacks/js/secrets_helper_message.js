// attack: have a helper quote the secret in its refusal
// grants: read,fetch:strict
// secret: TOKEN=Hunter2/Sesame+42
// expect: never Hunter2/Sesame+42
try {
  safety.fs.readText(`missing/${TOKEN}`);
} catch (error) {
  console.error(error.message);
}
fetch(`http://[${TOKEN}`);
