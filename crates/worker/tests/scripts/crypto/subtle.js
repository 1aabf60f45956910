// expect: true
const wrong = [];
const check = (name, found, expected) => {
  if (JSON.stringify(found) !== JSON.stringify(expected)) wrong.push([name, found, expected]);
};
const hex = (bytes) => Array.from(bytes).map((byte) => byte.toString(16).padStart(2, "0")).join("");
const utf8 = (text) => new TextEncoder().encode(text);
const subtle = crypto.subtle;
const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

// Both styles: with and without await.
check("at once", hex(subtle.digest("SHA-256", utf8("abc"))), abc);
check("awaited", hex(new Uint8Array(await subtle.digest("SHA-256", utf8("abc")))), abc);
check("then", await subtle.digest("SHA-256", utf8("abc")).then((hash) => hex(hash)), abc);
check("Promise.all", (await Promise.all([subtle.digest({ name: "sha-256" }, utf8("abc"))])).map(hex), [abc]);
const hash = subtle.digest("SHA-256", utf8("abc"));
check("as an array", [hash[0], hash.length, hash.byteLength, hash instanceof Uint8Array, Object.keys(hash).length], [0xba, 32, 32, true, 32]);
check("sizes", ["SHA-256", "SHA-384", "SHA-512"].map((name) => subtle.digest(name, []).length), [32, 48, 64]);
const whole = utf8("xabcx");
check("kinds of bytes", [whole.subarray(1, 4), new DataView(whole.buffer, 1, 3), whole.buffer.slice(1, 4), [97, 98, 99]].map((data) => hex(subtle.digest("SHA-256", data)) === abc), [true, true, true, true]);

const raw = utf8("Jefe");
const key = await subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
raw.fill(0);
const message = utf8("what do ya want for nothing?");
const signature = await subtle.sign("HMAC", key, message);
check("HMAC", hex(signature), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
check("key", [key instanceof CryptoKey, key.type, key.extractable, key.usages, key.algorithm], [true, "secret", false, ["sign", "verify"], { name: "HMAC", hash: { name: "SHA-256" }, length: 32 }]);
check("verify", [subtle.verify("HMAC", key, signature, message), await subtle.verify("HMAC", key, signature, utf8("else")), subtle.verify("HMAC", key, signature.slice(1), message)], [true, false, false]);
check("as the catalog writes it", hex(subtle.sign("HMAC", subtle.importKey("raw", Array.from(utf8("Jefe")), { name: "HMAC" }), Array.from(message))), hex(signature));
const strong = subtle.importKey("raw", utf8("Jefe"), { name: "HMAC", hash: { name: "SHA-512" } });
check("HMAC SHA-512", hex(subtle.sign({ name: "HMAC" }, strong, message)).slice(0, 16), "164b7a7bfcf819e2");

const bytes = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
const aes = subtle.importKey("raw", bytes("feffe9928665731c6d6a8f9467308308"), "AES-GCM", true, ["encrypt", "decrypt"]);
const how = { name: "AES-GCM", iv: bytes("cafebabefacedbaddecaf888"), additionalData: bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2"), tagLength: 128 };
const plain = bytes("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
const sealed = await subtle.encrypt(how, aes, plain);
check("AES-GCM", hex(sealed).slice(-32), "5bc94fbc3221a5db94fae95ae7121a47");
check("opened", hex(await subtle.decrypt(how, aes, sealed)), hex(plain));
for (const length of [128, 192, 256]) {
  const made = await subtle.generateKey({ name: "AES-GCM", length }, true, ["encrypt", "decrypt"]);
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const opened = subtle.decrypt({ name: "AES-GCM", iv }, made, subtle.encrypt({ name: "AES-GCM", iv }, made, utf8("round trip")));
  check(`AES-GCM ${length}`, [new TextDecoder().decode(opened), subtle.exportKey("raw", made).length * 8], ["round trip", length]);
}

const material = subtle.importKey("raw", new Uint8Array(22).fill(0x0b), "HKDF", false, ["deriveBits", "deriveKey"]);
const hkdf = { name: "HKDF", hash: "SHA-256", salt: bytes("000102030405060708090a0b0c"), info: bytes("f0f1f2f3f4f5f6f7f8f9") };
check("HKDF", hex(await subtle.deriveBits(hkdf, material, 336)), "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
const password = subtle.importKey("raw", utf8("passwd"), "PBKDF2", false, ["deriveBits", "deriveKey"]);
const slow = { name: "PBKDF2", hash: "SHA-256", salt: utf8("salt"), iterations: 1 };
check("PBKDF2", hex(subtle.deriveBits(slow, password, 512)).slice(0, 32), "55ac046e56e3089fec1691c22544b605");
const derived = await subtle.deriveKey(slow, password, { name: "AES-GCM", length: 256 }, true, ["encrypt"]);
check("derived key", [derived.algorithm, hex(subtle.exportKey("raw", derived)).slice(0, 32), derived.usages], [{ name: "AES-GCM", length: 256 }, "55ac046e56e3089fec1691c22544b605", ["encrypt"]]);
check("derived HMAC key", (await subtle.deriveKey(hkdf, material, { name: "HMAC", hash: "SHA-512" }, false, ["sign"])).algorithm.length, 1024);

const jwk = { kty: "oct", k: "SmVmZQ", alg: "HS256" };
const fromJwk = subtle.importKey("jwk", jwk, { name: "HMAC", hash: "SHA-256" }, true, ["sign"]);
check("JWK", [hex(subtle.sign("HMAC", fromJwk, message)), await subtle.exportKey("jwk", fromJwk)], [hex(signature), { ...{ kty: "oct", k: "SmVmZQ", alg: "HS256" }, key_ops: ["sign"], ext: true }]);
const generated = subtle.generateKey({ name: "HMAC", hash: "SHA-384" }, true, ["sign", "verify"]);
check("generated", [generated.algorithm.length, subtle.exportKey("jwk", generated).alg, subtle.verify("HMAC", generated, subtle.sign("HMAC", generated, [1]), [1])], [1024, "HS384", true]);
return wrong.length === 0 || wrong;
