// attack: throw a helper's error with the secret for a reason
// grants: none
// secret: TOKEN=Hunter2/Sesame+42
// expect: never Hunter2/Sesame+42
try {
  safety.parser.xml("<");
} catch (error) {
  error.kind = `kind ${TOKEN}`;
  error.helper = `helper ${TOKEN}`;
  error.reason = TOKEN;
  throw error;
}
