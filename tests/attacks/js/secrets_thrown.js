// attack: throw the secret
// grants: none
// secret: TOKEN=Hunter2/Sesame+42
// expect: never Hunter2/Sesame+42
throw Object.assign(new Error(`request with ${TOKEN} failed`), { name: TOKEN });
