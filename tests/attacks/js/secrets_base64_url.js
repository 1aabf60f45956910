// attack: return the secret in the alphabet of web tokens
// grants: none
// secret: TOKEN=>>>???secret>>>???
// expect: never Pj4-Pz8_c2VjcmV0Pj4-Pz8_
return new TextEncoder().encode(TOKEN).toBase64({ alphabet: "base64url" });
