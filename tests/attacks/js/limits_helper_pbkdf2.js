// attack: a million rounds of hashing outside of the engine
// grants: none
// limits: statements=2000
// expect: execute.statements
const key = crypto.subtle.importKey("raw", new Uint8Array(16), "PBKDF2");
return crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-512", salt: new Uint8Array(16), iterations: 1000000 }, key, 512).length;
