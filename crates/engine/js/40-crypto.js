// crypto: random values and WebCrypto's secret-key algorithms.
//
// Every function of `crypto.subtle` finishes its work before it returns, and its result can still be awaited: bytes are a
// Uint8Array (`hash[0]`, `Array.from(hash)`, `new Uint8Array(hash)`), keys are CryptoKeys. `verify` returns a plain boolean,
// which `await` accepts, too. Errors are thrown at once, with the `name` that web code expects.
const { toHex, toBase64 } = Bytes.prototype;
const { fromBase64 } = Bytes;
const { toUpperCase } = StringOf.prototype;
const { isInteger } = NumberOf;

function subtleError(method, name, reason, message) {
  const error = invalidInput(`crypto.subtle.${method}`, reason, message);
  defineProperty(error, "name", { value: name, writable: true, configurable: true, enumerable: false });
  return error;
}

// Asks the host; a failure gets the name that it has in browsers.
function compute(op, parameters, parts) {
  try {
    return host(op, stringify(parameters), joined(parts));
  } catch (error) {
    if (error instanceof ToolError) {
      defineProperty(error, "name", { value: "OperationError", writable: true, configurable: true, enumerable: false });
    }
    throw error;
  }
}

function areBytes(list) {
  for (const item of list) {
    if (!isInteger(item) || item < 0 || item > 255) return false;
  }
  return true;
}

// Accepts buffers, views and plain arrays of bytes. A string is refused, because it has no bytes without an encoding.
function dataOf(method, what, value) {
  const bytes = bytesOf(value);
  if (bytes !== undefined) return bytes;
  if (isArray(value) && areBytes(value)) return new Bytes(value);
  const remedy = typeof value === "string" ? "; encode the text with TextEncoder first" : ": an ArrayBuffer, a typed array, a DataView or an array of numbers from 0 to 255";
  throw subtleError(method, "TypeError", "not-bytes", `${what} must be bytes${remedy}`);
}

const unsupported = (method, what, known) =>
  subtleError(method, "NotSupportedError", "unsupported-algorithm", `\`${textOf(what, 50)}\` is not supported; use ${known}`);

const nameOf = (algorithm) => textOf(typeof algorithm === "string" ? algorithm : algorithm?.name, 50);

function hashOf(method, hash) {
  const name = apply(toUpperCase, nameOf(hash), []);
  if (name === "SHA-256" || name === "SHA-384" || name === "SHA-512") return name;
  throw unsupported(method, nameOf(hash), "SHA-256, SHA-384 or SHA-512");
}

const keyUsages = freeze({
  __proto__: null,
  "HMAC": freeze(["sign", "verify"]),
  "AES-GCM": freeze(["encrypt", "decrypt"]),
  "HKDF": freeze(["deriveBits", "deriveKey"]),
  "PBKDF2": freeze(["deriveBits", "deriveKey"]),
});

function keyAlgorithmOf(method, algorithm) {
  const name = apply(toUpperCase, nameOf(algorithm), []);
  if (keyUsages[name] === undefined) throw unsupported(method, nameOf(algorithm), "HMAC, AES-GCM, HKDF or PBKDF2");
  return name;
}

// Set by the class below: the only ways to create a key and to read its bytes.
let makeKey, secretOf;

class CryptoKey {
  #secret;
  #algorithm;
  #extractable;
  #usages;

  static #mayConstruct = false;

  static {
    makeKey = (secret, algorithm, extractable, usages) => {
      CryptoKey.#mayConstruct = true;
      const key = new CryptoKey();
      key.#secret = secret;
      key.#algorithm = freeze(algorithm);
      key.#extractable = extractable;
      key.#usages = freeze(usages);
      return key;
    };
    secretOf = (key) => (typeof key === "object" && key !== null && #secret in key ? key.#secret : undefined);
  }

  constructor() {
    if (!CryptoKey.#mayConstruct) throw new WrongType("a CryptoKey is made by crypto.subtle.importKey or generateKey");
    CryptoKey.#mayConstruct = false;
  }

  get type() {
    return "secret";
  }

  get algorithm() {
    return this.#algorithm;
  }

  get extractable() {
    return this.#extractable;
  }

  get usages() {
    return this.#usages;
  }
}

// The bytes of a key that allows this usage.
function secretFor(method, key, name, usage) {
  const secret = secretOf(key);
  if (secret === undefined) throw subtleError(method, "TypeError", "not-a-key", "the key must be a CryptoKey; make one with crypto.subtle.importKey");
  if (key.algorithm.name !== name) {
    throw subtleError(method, "InvalidAccessError", "wrong-key", `the key is for ${key.algorithm.name}, not for ${name}`);
  }
  if (!key.usages.includes(usage)) {
    throw subtleError(method, "InvalidAccessError", "key-usage", `the key may not be used to ${usage}; name \`${usage}\` in its usages when you make it`);
  }
  return secret;
}

// Without a list, a key allows everything that its algorithm can do.
function usagesOf(method, name, usages) {
  const possible = keyUsages[name];
  if (usages === undefined) return [...possible];
  const wanted = isArray(usages) ? usages : [];
  if (wanted.length === 0 || !wanted.every((usage) => possible.includes(usage))) {
    throw subtleError(method, "SyntaxError", "invalid-usages", `a key for ${name} is used to ${possible.join(" or to ")}`);
  }
  return possible.filter((usage) => wanted.includes(usage));
}

// The algorithm description of a key; a length that the algorithm does not support is refused.
function describeKey(method, name, algorithm, size) {
  if (name === "HMAC") {
    if (size === 0) throw subtleError(method, "DataError", "invalid-key", "a key for HMAC has at least one byte");
    return { name, hash: freeze({ name: hashOf(method, algorithm?.hash ?? "SHA-256") }), length: size * 8 };
  }
  if (name !== "AES-GCM") return { name };
  if (size !== 16 && size !== 24 && size !== 32) {
    throw subtleError(method, "DataError", "invalid-key", `a key for AES-GCM has 16, 24 or 32 bytes, not ${size}`);
  }
  return { name, length: size * 8 };
}

const hasJwk = (name) => name === "HMAC" || name === "AES-GCM";
const wrongJwk = (message) => subtleError("importKey", "DataError", "invalid-key", message);
const jwkName = ({ name, length, hash }) => (name === "HMAC" ? `HS${hash.name.slice(4)}` : `A${length}GCM`);

function secretOfJwk(jwk) {
  if (typeof jwk !== "object" || jwk === null || jwk.kty !== "oct" || typeof jwk.k !== "string") {
    throw wrongJwk("the JSON Web Key must have `kty` \"oct\" and its bytes in `k`");
  }
  try {
    return apply(fromBase64, Bytes, [jwk.k, { alphabet: "base64url" }]);
  } catch {
    throw wrongJwk("`k` of the JSON Web Key is not base64url");
  }
}

// A key must be used with its own algorithm.
function compareJwk(jwk, described, extractable) {
  if (jwk.alg !== undefined && jwk.alg !== jwkName(described)) {
    throw wrongJwk(`the JSON Web Key is for \`${textOf(jwk.alg, 50)}\`, not for \`${jwkName(described)}\``);
  }
  if (jwk.ext === false && extractable) throw wrongJwk("the JSON Web Key has `ext` false; import it with `extractable` false");
}

function jwkOf(key, secret) {
  const k = apply(toBase64, secret, [{ alphabet: "base64url", omitPadding: true }]);
  return { kty: "oct", k, alg: jwkName(key.algorithm), key_ops: [...key.usages], ext: true };
}

function sealing(method, op, algorithm, key, data) {
  if (keyAlgorithmOf(method, algorithm) !== "AES-GCM") throw unsupported(method, nameOf(algorithm), "AES-GCM");
  const secret = secretFor(method, key, "AES-GCM", method);
  const tagLength = algorithm.tagLength ?? 128;
  if (tagLength !== 128) throw subtleError(method, "OperationError", "invalid-tag-length", "`tagLength` is 128 here; leave it out");
  const iv = dataOf(method, "`iv`", algorithm.iv);
  const aad = algorithm.additionalData === undefined ? new Bytes(0) : dataOf(method, "`additionalData`", algorithm.additionalData);
  const lengths = { keyLength: secret.length, ivLength: iv.length, aadLength: aad.length };
  return compute(op, lengths, [secret, iv, aad, dataOf(method, "the data", data)]);
}

function derive(method, algorithm, key, bits) {
  const name = keyAlgorithmOf(method, algorithm);
  if (name !== "HKDF" && name !== "PBKDF2") throw unsupported(method, name, "HKDF or PBKDF2");
  const secret = secretFor(method, key, name, method);
  if (!isInteger(bits) || bits < 0 || bits % 8 !== 0) {
    throw subtleError(method, "OperationError", "invalid-length", "the length is a number of bits, a multiple of 8");
  }
  const salt = dataOf(method, "`salt`", algorithm.salt);
  const asked = { hash: hashOf(method, algorithm.hash), keyLength: secret.length, saltLength: salt.length, length: bits / 8 };
  if (name === "HKDF") return compute(OP.HKDF, asked, [secret, salt, dataOf(method, "`info`", algorithm.info)]);
  const { iterations } = algorithm;
  if (!isInteger(iterations) || iterations < 1 || iterations > 1_000_000) {
    throw subtleError(method, "OperationError", "invalid-iterations", "`iterations` is a number from 1 to 1000000");
  }
  return compute(OP.PBKDF2, { ...asked, iterations }, [secret, salt]);
}

// The length of a key to generate or derive, in bits. The default for HMAC is the block size of its hash.
function keyLengthOf(method, name, algorithm) {
  const length = algorithm?.length ?? (name === "HMAC" ? (hashOf(method, algorithm?.hash ?? "SHA-256") === "SHA-256" ? 512 : 1024) : undefined);
  if (isInteger(length) && length > 0 && length <= 65_536 && length % 8 === 0) return length;
  throw subtleError(method, "OperationError", "invalid-length", "`length` of the key is a number of bits, a multiple of 8");
}

class SubtleCrypto {
  digest(algorithm, data) {
    return awaitable(host(OP.DIGEST, hashOf("digest", algorithm), dataOf("digest", "the data", data)));
  }

  importKey(format, keyData, algorithm, extractable = false, usages = undefined) {
    const name = keyAlgorithmOf("importKey", algorithm);
    const known = hasJwk(name) ? "`raw` or `jwk`" : "`raw`";
    if (format !== "raw" && !(format === "jwk" && hasJwk(name))) {
      throw subtleError("importKey", "NotSupportedError", "unsupported-format", `a key for ${name} is imported as ${known}`);
    }
    // A copy, because the caller may change or clear its bytes.
    const secret = format === "raw" ? dataOf("importKey", "the key", keyData).slice() : secretOfJwk(keyData);
    const described = describeKey("importKey", name, algorithm, secret.length);
    if (format === "jwk") compareJwk(keyData, described, extractable);
    return awaitable(makeKey(secret, described, Boolean(extractable), usagesOf("importKey", name, usages)));
  }

  exportKey(format, key) {
    const secret = secretOf(key);
    if (secret === undefined) throw subtleError("exportKey", "TypeError", "not-a-key", "the key must be a CryptoKey; make one with crypto.subtle.importKey");
    if (!key.extractable) {
      throw subtleError("exportKey", "InvalidAccessError", "not-extractable", "the key was made with `extractable` false and stays inside");
    }
    if (!hasJwk(key.algorithm.name) || (format !== "raw" && format !== "jwk")) {
      throw subtleError("exportKey", "NotSupportedError", "unsupported-format", "keys for HMAC and AES-GCM are exported, as `raw` or `jwk`");
    }
    return awaitable(format === "raw" ? secret.slice() : jwkOf(key, secret));
  }

  generateKey(algorithm, extractable = false, usages = undefined) {
    const name = keyAlgorithmOf("generateKey", algorithm);
    if (name !== "HMAC" && name !== "AES-GCM") throw unsupported("generateKey", name, "HMAC or AES-GCM");
    const secret = host(OP.RANDOM, `${keyLengthOf("generateKey", name, algorithm) / 8}`);
    const described = describeKey("generateKey", name, algorithm, secret.length);
    return awaitable(makeKey(secret, described, Boolean(extractable), usagesOf("generateKey", name, usages)));
  }

  sign(algorithm, key, data) {
    if (keyAlgorithmOf("sign", algorithm) !== "HMAC") throw unsupported("sign", nameOf(algorithm), "HMAC");
    const secret = secretFor("sign", key, "HMAC", "sign");
    const asked = { hash: key.algorithm.hash.name, keyLength: secret.length };
    return awaitable(compute(OP.HMAC_SIGN, asked, [secret, dataOf("sign", "the data", data)]));
  }

  verify(algorithm, key, signature, data) {
    if (keyAlgorithmOf("verify", algorithm) !== "HMAC") throw unsupported("verify", nameOf(algorithm), "HMAC");
    const secret = secretFor("verify", key, "HMAC", "verify");
    const given = dataOf("verify", "the signature", signature);
    const asked = { hash: key.algorithm.hash.name, keyLength: secret.length, signatureLength: given.length };
    return compute(OP.HMAC_VERIFY, asked, [secret, given, dataOf("verify", "the data", data)]);
  }

  encrypt(algorithm, key, data) {
    return awaitable(sealing("encrypt", OP.AES_GCM_ENCRYPT, algorithm, key, data));
  }

  decrypt(algorithm, key, data) {
    return awaitable(sealing("decrypt", OP.AES_GCM_DECRYPT, algorithm, key, data));
  }

  deriveBits(algorithm, key, length) {
    return awaitable(derive("deriveBits", algorithm, key, length));
  }

  deriveKey(algorithm, key, keyAlgorithm, extractable = false, usages = undefined) {
    const name = keyAlgorithmOf("deriveKey", keyAlgorithm);
    if (name !== "HMAC" && name !== "AES-GCM") throw unsupported("deriveKey", name, "HMAC or AES-GCM for the derived key");
    const secret = derive("deriveKey", algorithm, key, keyLengthOf("deriveKey", name, keyAlgorithm));
    const described = describeKey("deriveKey", name, keyAlgorithm, secret.length);
    return awaitable(makeKey(secret, described, Boolean(extractable), usagesOf("deriveKey", name, usages)));
  }
}

class Crypto {
  get subtle() {
    return subtle;
  }

  getRandomValues(array) {
    const kind = kindOfArray(array);
    if (kind === undefined || /^Float/.test(kind)) {
      throw new WebError("crypto.getRandomValues fills a typed array of integers", "TypeMismatchError");
    }
    const size = apply(arraySizeOf, array, []);
    if (size > 65_536) {
      throw new WebError(`crypto.getRandomValues fills at most 65536 bytes at once, not ${size}`, "QuotaExceededError");
    }
    bytesOf(array).set(host(OP.RANDOM, `${size}`));
    return array;
  }

  randomUUID() {
    const bytes = host(OP.RANDOM, "16");
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = apply(toHex, bytes, []);
    const part = (from, to) => apply(sliceText, hex, [from, to]);
    return `${part(0, 8)}-${part(8, 12)}-${part(12, 16)}-${part(16, 20)}-${part(20, 32)}`;
  }
}

for (const { prototype, name } of [Crypto, CryptoKey, SubtleCrypto]) {
  defineProperty(prototype, SymbolOf.toStringTag, { value: name, configurable: true });
}

const subtle = new SubtleCrypto();

publish({ crypto: new Crypto(), CryptoKey });
