// expect: true
const wrong = [];
const check = (name, act, expected) => {
  let found;
  try {
    act();
    found = "nothing thrown";
  } catch (error) {
    found = [error.name, error.kind, error.helper, error.reason];
  }
  const [errorName, helper, reason, kind = "INVALID_INPUT"] = expected;
  const full = [errorName, kind, `crypto.subtle.${helper}`, reason];
  if (JSON.stringify(found) !== JSON.stringify(full)) wrong.push([name, found, full]);
};
const { subtle } = crypto;
const some = new Uint8Array(16);
for (const name of ["SHA-1", "MD5", "sha1", "", undefined, null, {}, 7]) check(`digest ${name}`, () => subtle.digest(name, some), ["NotSupportedError", "digest", "unsupported-algorithm"]);
for (const data of ["text", 1, null, undefined, {}, [256], [-1], [1.5], ["a"], [, 1]]) check("digest of no bytes", () => subtle.digest("SHA-256", data), ["TypeError", "digest", "not-bytes"]);

check("import RSA", () => subtle.importKey("raw", some, "RSA-OAEP"), ["NotSupportedError", "importKey", "unsupported-algorithm"]);
check("import pkcs8", () => subtle.importKey("pkcs8", some, "HMAC"), ["NotSupportedError", "importKey", "unsupported-format"]);
check("import jwk for HKDF", () => subtle.importKey("jwk", { kty: "oct", k: "AA" }, "HKDF"), ["NotSupportedError", "importKey", "unsupported-format"]);
check("import HMAC SHA-1", () => subtle.importKey("raw", some, { name: "HMAC", hash: "SHA-1" }), ["NotSupportedError", "importKey", "unsupported-algorithm"]);
check("empty HMAC key", () => subtle.importKey("raw", [], "HMAC"), ["DataError", "importKey", "invalid-key"]);
check("short AES key", () => subtle.importKey("raw", [1, 2], "AES-GCM"), ["DataError", "importKey", "invalid-key"]);
check("no usages", () => subtle.importKey("raw", some, "HMAC", false, []), ["SyntaxError", "importKey", "invalid-usages"]);
check("wrong usages", () => subtle.importKey("raw", some, "HMAC", false, ["encrypt"]), ["SyntaxError", "importKey", "invalid-usages"]);
check("jwk of another kind", () => subtle.importKey("jwk", { kty: "RSA" }, "HMAC"), ["DataError", "importKey", "invalid-key"]);
check("jwk that is no base64url", () => subtle.importKey("jwk", { kty: "oct", k: "a+b=" }, "HMAC"), ["DataError", "importKey", "invalid-key"]);
check("jwk for another algorithm", () => subtle.importKey("jwk", { kty: "oct", k: "AAAA", alg: "HS512" }, "HMAC"), ["DataError", "importKey", "invalid-key"]);
check("jwk that stays inside", () => subtle.importKey("jwk", { kty: "oct", k: "AAAA", ext: false }, "HMAC", true), ["DataError", "importKey", "invalid-key"]);

const signer = subtle.importKey("raw", some, "HMAC", false, ["sign"]);
const aes = subtle.importKey("raw", some, "AES-GCM");
const secret = subtle.importKey("raw", some, "HKDF", true);
check("verify with a key to sign", () => subtle.verify("HMAC", signer, some, some), ["InvalidAccessError", "verify", "key-usage"]);
check("sign with another key", () => subtle.sign("HMAC", aes, some), ["InvalidAccessError", "sign", "wrong-key"]);
check("sign with AES", () => subtle.sign("AES-GCM", aes, some), ["NotSupportedError", "sign", "unsupported-algorithm"]);
for (const key of [undefined, null, {}, "key", some, Object.create(CryptoKey.prototype)]) check("sign with no key", () => subtle.sign("HMAC", key, some), ["TypeError", "sign", "not-a-key"]);
check("export what stays inside", () => subtle.exportKey("raw", signer), ["InvalidAccessError", "exportKey", "not-extractable"]);
check("export HKDF", () => subtle.exportKey("raw", secret), ["NotSupportedError", "exportKey", "unsupported-format"]);

const iv = new Uint8Array(12);
check("iv of 16 bytes", () => subtle.encrypt({ name: "AES-GCM", iv: some }, aes, some), ["OperationError", "encrypt", "invalid-iv"]);
check("no iv", () => subtle.encrypt({ name: "AES-GCM" }, aes, some), ["TypeError", "encrypt", "not-bytes"]);
check("short tag", () => subtle.encrypt({ name: "AES-GCM", iv, tagLength: 96 }, aes, some), ["OperationError", "encrypt", "invalid-tag-length"]);
check("AES-CBC", () => subtle.encrypt({ name: "AES-CBC", iv }, aes, some), ["NotSupportedError", "encrypt", "unsupported-algorithm"]);
check("forged", () => subtle.decrypt({ name: "AES-GCM", iv }, aes, some), ["OperationError", "decrypt", "decryption-failed", "HELPER_RUNTIME"]);

const hkdf = { name: "HKDF", hash: "SHA-256", salt: [], info: [] };
check("bits that are no bytes", () => subtle.deriveBits(hkdf, secret, 7), ["OperationError", "deriveBits", "invalid-length"]);
check("no length", () => subtle.deriveBits(hkdf, secret, null), ["OperationError", "deriveBits", "invalid-length"]);
check("too much", () => subtle.deriveBits(hkdf, secret, 255 * 32 * 8 + 8), ["OperationError", "deriveBits", "invalid-length"]);
check("far too much", () => subtle.deriveBits(hkdf, secret, 8e15), ["OperationError", "deriveBits", "invalid-length"]);
check("derive with HMAC", () => subtle.deriveBits("HMAC", signer, 8), ["NotSupportedError", "deriveBits", "unsupported-algorithm"]);
const password = subtle.importKey("raw", some, "PBKDF2");
for (const iterations of [0, -1, 1.5, 1_000_001, "10", undefined]) {
  check("iterations", () => subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt: [], iterations }, password, 256), ["OperationError", "deriveBits", "invalid-iterations"]);
}
check("generate HKDF", () => subtle.generateKey("HKDF"), ["NotSupportedError", "generateKey", "unsupported-algorithm"]);
check("generate without length", () => subtle.generateKey({ name: "AES-GCM" }), ["OperationError", "generateKey", "invalid-length"]);

try {
  new CryptoKey();
  wrong.push("a key was made by hand");
} catch (error) {
  if (!(error instanceof TypeError)) wrong.push(error.name);
}
// A key cannot be read or changed from outside.
const seen = [...Reflect.ownKeys(signer), JSON.stringify(signer)].map(String);
if (seen.some((text) => !["then", "catch", "finally", "{}"].includes(text))) wrong.push(seen);
try {
  signer.usages.push("verify");
  wrong.push("usages were changed");
} catch (error) {
  if (!(error instanceof TypeError)) wrong.push(error.name);
}
return wrong.length === 0 || wrong;
