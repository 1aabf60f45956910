// attack: return the secret
// grants: none
// secret: TOKEN=Hunter2/Sesame+42
// expect: never Hunter2/Sesame+42
return { token: TOKEN, list: [`Bearer ${TOKEN}.`], nested: JSON.stringify({ t: TOKEN }) };
