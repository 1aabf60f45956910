// attack: return the secret in JSON that is a text in JSON
// grants: none
// secret: TOKEN=Hunter2"\Sesame'42
// expect: never Sesame
return JSON.stringify({ body: JSON.stringify({ token: TOKEN }) });
