// attack: pass off a plain object as a key
// grants: none
// expect: throws INVALID_INPUT not-a-key
const forged = Object.create(CryptoKey.prototype, { algorithm: { value: { name: "HMAC" } }, usages: { value: ["sign"] } });
return crypto.subtle.sign("HMAC", forged, new Uint8Array(1));
