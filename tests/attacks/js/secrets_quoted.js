// attack: have a helper quote the secret, which escapes its quotation mark
// grants: read
// secret: TOKEN=Hunter2/(Sesame)!*'42
// expect: never (Sesame)
try {
  safety.fs.readText(`missing/${TOKEN}`);
} catch (error) {
  console.log(error.message, { error: error.message });
  return [error.message, JSON.stringify({ error: error.message })];
}
