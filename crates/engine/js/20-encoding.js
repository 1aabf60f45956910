// Text and bytes: TextEncoder, TextDecoder, atob, btoa.
const { RangeError: OutOfRange, DOMException: WebError, DataView: View } = globalThis;
const { getOwnPropertyDescriptor } = ObjectOf;
const { isView } = Buffer;
const typedArray = getPrototypeOf(Bytes.prototype);
const getterOf = (prototype, name) => getOwnPropertyDescriptor(prototype, name).get;
const arrayBufferOf = getterOf(typedArray, "buffer");
const arrayOffsetOf = getterOf(typedArray, "byteOffset");
const arraySizeOf = getterOf(typedArray, "byteLength");
const arrayKindOf = getterOf(typedArray, SymbolOf.toStringTag);
const viewBufferOf = getterOf(View.prototype, "buffer");
const viewOffsetOf = getterOf(View.prototype, "byteOffset");
const viewSizeOf = getterOf(View.prototype, "byteLength");
const bufferSizeOf = getterOf(Buffer.prototype, "byteLength");
const { toWellFormed, charCodeAt, slice: sliceText } = StringOf.prototype;

// `Uint8Array`, `Float64Array`, …; undefined for a value that is not a typed array.
const kindOfArray = (value) => apply(arrayKindOf, value, []);

function isBuffer(value) {
  try {
    apply(bufferSizeOf, value, []);
    return true;
  } catch {
    return false;
  }
}

// The bytes of a buffer or view, not copied; undefined for everything else.
function bytesOf(value) {
  if (kindOfArray(value) === "Uint8Array") return value;
  if (kindOfArray(value) !== undefined) {
    return new Bytes(apply(arrayBufferOf, value, []), apply(arrayOffsetOf, value, []), apply(arraySizeOf, value, []));
  }
  if (isView(value)) {
    return new Bytes(apply(viewBufferOf, value, []), apply(viewOffsetOf, value, []), apply(viewSizeOf, value, []));
  }
  if (typeof value === "object" && value !== null && isBuffer(value)) return new Bytes(value);
  return undefined;
}

// Lone surrogates become U+FFFD, as on the web.
const wellFormed = (value) => apply(toWellFormed, `${value}`, []);
const utf8 = (text) => host(OP.UTF8_ENCODE, text);

class TextEncoder {
  get encoding() {
    return "utf-8";
  }

  encode(input = "") {
    return utf8(wellFormed(input));
  }

  encodeInto(source, destination) {
    if (kindOfArray(destination) !== "Uint8Array") {
      throw new WrongType("TextEncoder.encodeInto writes to a Uint8Array; give one as the second argument");
    }
    const room = apply(arraySizeOf, destination, []);
    // Every code unit needs at least one byte, and a lone surrogate at the end needs more space than is left.
    let text = `${source}`;
    if (text.length > room) {
      const last = apply(charCodeAt, text, [room - 1]);
      text = apply(sliceText, text, [0, last >= 0xd800 && last < 0xdc00 ? room - 1 : room]);
    }
    const bytes = utf8(apply(toWellFormed, text, []));
    let written = bytes.length;
    if (written > room) {
      written = room;
      while (written > 0 && (bytes[written] & 0xc0) === 0x80) written--;
    }
    let read = 0;
    for (let at = 0; at < written; at++) {
      const byte = bytes[at];
      destination[at] = byte;
      if ((byte & 0xc0) !== 0x80) read += byte >= 0xf0 ? 2 : 1;
    }
    return { read, written };
  }
}

// The number of trailing bytes that begin an incomplete character. Other multi-byte encodings than Unicode's are not split: their
// text is returned with the last chunk.
function unfinished(encoding, bytes) {
  const size = bytes.length;
  if (encoding === "utf-8") {
    for (let back = 1; back <= 3 && back <= size; back++) {
      const byte = bytes[size - back];
      if ((byte & 0xc0) === 0x80) continue;
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
      return needed > back ? back : 0;
    }
    return 0;
  }
  if (encoding === "utf-16le" || encoding === "utf-16be") {
    const odd = size % 2;
    const high = bytes[size - odd - (encoding === "utf-16le" ? 1 : 2)];
    return odd + (high >= 0xd8 && high < 0xdc ? 2 : 0);
  }
  return /^(big5|euc-|gb|iso-2022|shift)/.test(encoding) ? size : 0;
}

function joined(parts) {
  let size = 0;
  for (const part of parts) size += part.length;
  const whole = new Bytes(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

class TextDecoder {
  #encoding = "utf-8";
  #fatal;
  #ignoreBOM;
  #pending = new Bytes(0);
  #begun = false;

  constructor(label = "utf-8", options = {}) {
    if (label !== "utf-8") {
      const name = host(OP.ENCODING_NAME, `${label}`);
      if (name === undefined) throw new OutOfRange(`there is no encoding \`${label}\`; use \`utf-8\``);
      this.#encoding = name;
    }
    this.#fatal = Boolean(options?.fatal);
    this.#ignoreBOM = Boolean(options?.ignoreBOM);
  }

  get encoding() {
    return this.#encoding;
  }

  get fatal() {
    return this.#fatal;
  }

  get ignoreBOM() {
    return this.#ignoreBOM;
  }

  decode(input, options) {
    const given = input === undefined ? new Bytes(0) : bytesOf(input);
    if (given === undefined) {
      throw new InvalidValue("TextDecoder", "not-bytes", "TextDecoder.decode takes an ArrayBuffer, a typed array or a DataView");
    }
    let bytes = this.#pending.length > 0 ? joined([this.#pending, given]) : given;
    const streams = Boolean(options?.stream);
    const held = streams ? unfinished(this.#encoding, bytes) : 0;
    // A copy, because the given buffer may change before the next chunk.
    this.#pending = held > 0 ? bytes.slice(bytes.length - held) : new Bytes(0);
    if (held > 0) bytes = bytes.subarray(0, bytes.length - held);
    const keepMark = this.#ignoreBOM || this.#begun;
    this.#begun = streams && (this.#begun || bytes.length > 0);
    if (bytes.length === 0) return "";
    const text = host(OP.DECODE, `${this.#encoding} ${this.#fatal ? "fatal" : "replace"} ${keepMark ? "keep" : "strip"}`, bytes);
    if (text !== undefined) return text;
    this.#pending = new Bytes(0);
    this.#begun = false;
    throw new InvalidValue("TextDecoder", "invalid-text", `the bytes are not ${this.#encoding}; leave out \`fatal\` to have them replaced`);
  }
}

for (const { prototype, name } of [TextEncoder, TextDecoder]) {
  defineProperty(prototype, SymbolOf.toStringTag, { value: name, configurable: true });
}

const { atob: decodeBase64, btoa: encodeBase64 } = globalThis;

function btoa(binary) {
  const text = `${binary}`;
  try {
    return encodeBase64(text);
  } catch (error) {
    for (let at = 0; at < text.length; at++) {
      if (apply(charCodeAt, text, [at]) <= 0xff) continue;
      throw invalidInput("btoa", "non-latin-1", `the character at index ${at} is not Latin-1; encode the text with TextEncoder first`);
    }
    throw error;
  }
}

function atob(base64) {
  const text = `${base64}`;
  try {
    return decodeBase64(text);
  } catch (error) {
    if (!(error instanceof WebError)) throw error;
    throw invalidInput("atob", "invalid-base64", "the text is not base64; use A-Z, a-z, 0-9, + and /, padded with =");
  }
}

publish({ TextEncoder, TextDecoder, atob, btoa });
