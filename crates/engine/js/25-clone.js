// structuredClone: deep copies of data, including cycles.
const { Boolean: BooleanOf, BigInt: BigIntOf, Date: DateOf, RegExp: Pattern, Set: SetOf, WeakMap: WeakMapOf, WeakSet: WeakSetOf, WeakRef: WeakRefOf } = globalThis;
const { isArray } = ArrayOf;
const { get: mapGet, set: mapSet, has: mapHas } = MapOf.prototype;
const arrayKinds = freeze({
  __proto__: null,
  Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array,
  Float16Array, Float32Array, Float64Array,
});
const errorKinds = freeze({ __proto__: null, Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError });

const uncloneable = (value, why) => new WebError(`${textOf(value, 100)} cannot be cloned: ${why}`, "DataCloneError");

// Objects that the web refuses to clone.
function isPlatformObject(value) {
  for (const kind of [PromiseOf, WeakMapOf, WeakSetOf, WeakRefOf, URL, URLSearchParams, CryptoKey, TextEncoder, TextDecoder]) {
    if (value instanceof kind) return true;
  }
  return false;
}

// Copies of values already seen, and those whose content is not copied yet. A list instead of recursion, because the tool decides
// about the depth of its data.
class Cloning {
  #copies = new MapOf();
  #unfilled = [];
  #transfers = [];

  constructor(transferred) {
    for (const buffer of transferred) {
      if (!isBuffer(buffer) || buffer.detached || apply(mapHas, this.#copies, [buffer])) {
        throw uncloneable(buffer, "only ArrayBuffers that are in use can be transferred, each once");
      }
      const copy = new Buffer(apply(bufferSizeOf, buffer, []));
      apply(mapSet, this.#copies, [buffer, copy]);
      this.#transfers.push([buffer, copy]);
    }
  }

  run(value) {
    const copy = this.copyOf(value);
    // Filling one adds the values inside it.
    for (let at = 0; at < this.#unfilled.length; at++) this.#unfilled[at]();
    // Transfers happen last, so nothing is lost if a part cannot be cloned.
    for (const [buffer, moved] of this.#transfers) {
      new Bytes(moved).set(new Bytes(buffer));
      buffer.transfer(0);
    }
    return copy;
  }

  copyOf(value) {
    if (typeof value === "symbol" || typeof value === "function") throw uncloneable(value, `it is a ${typeof value}`);
    if (typeof value !== "object" || value === null) return value;
    const known = apply(mapGet, this.#copies, [value]);
    if (known !== undefined) return known;
    const copy = this.#emptyCopyOf(value);
    apply(mapSet, this.#copies, [value, copy]);
    return copy;
  }

  #emptyCopyOf(value) {
    if (isArray(value)) return this.#later(new ArrayOf(value.length), (copy) => this.#copyProperties(value, copy));
    const kind = kindOfArray(value);
    if (kind !== undefined) return this.#copyOfArray(value, arrayKinds[kind]);
    if (isView(value)) {
      return new View(this.copyOf(apply(viewBufferOf, value, [])), apply(viewOffsetOf, value, []), apply(viewSizeOf, value, []));
    }
    if (value instanceof Buffer) {
      if (value.detached) throw uncloneable(value, "it was transferred before");
      return apply(Buffer.prototype.slice, value, [0]);
    }
    if (value instanceof DateOf) return new DateOf(apply(DateOf.prototype.getTime, value, []));
    if (value instanceof Pattern) return new Pattern(value.source, value.flags);
    if (value instanceof MapOf) return this.#copyOfMap(value);
    if (value instanceof SetOf) return this.#copyOfSet(value);
    if (value instanceof BaseError) return this.#copyOfError(value);
    for (const Wrapper of [BooleanOf, NumberOf, StringOf, BigIntOf]) {
      if (value instanceof Wrapper) return ObjectOf(apply(Wrapper.prototype.valueOf, value, []));
    }
    if (isPlatformObject(value)) throw uncloneable(value, "it is more than data");
    return this.#later({}, (copy) => this.#copyProperties(value, copy));
  }

  #later(copy, fill) {
    this.#unfilled.push(() => fill(copy));
    return copy;
  }

  #copyProperties(value, copy) {
    for (const key of keys(value)) {
      const member = { value: this.copyOf(value[key]), writable: true, configurable: true, enumerable: true };
      defineProperty(copy, key, member);
    }
  }

  #copyOfArray(value, Kind) {
    const buffer = this.copyOf(apply(arrayBufferOf, value, []));
    return new Kind(buffer, apply(arrayOffsetOf, value, []), value.length);
  }

  #copyOfMap(value) {
    const held = [...apply(MapOf.prototype.entries, value, [])];
    return this.#later(new MapOf(), (copy) => {
      for (const [key, member] of held) apply(mapSet, copy, [this.copyOf(key), this.copyOf(member)]);
    });
  }

  #copyOfSet(value) {
    const held = [...apply(SetOf.prototype.values, value, [])];
    return this.#later(new SetOf(), (copy) => {
      for (const member of held) apply(SetOf.prototype.add, copy, [this.copyOf(member)]);
    });
  }

  #copyOfError(value) {
    const Kind = errorKinds[value.name] ?? BaseError;
    const hide = (text) => ({ value: text, writable: true, configurable: true, enumerable: false });
    return this.#later(new Kind(), (copy) => {
      if ("message" in value) defineProperty(copy, "message", hide(`${value.message}`));
      if (typeof value.stack === "string") defineProperty(copy, "stack", hide(value.stack));
      if (ObjectOf.hasOwn(value, "cause")) defineProperty(copy, "cause", hide(this.copyOf(value.cause)));
    });
  }
}

function structuredClone(value, options) {
  if (arguments.length === 0) throw new WrongType("structuredClone needs a value to copy");
  return new Cloning(options?.transfer ?? []).run(value);
}

publish({ structuredClone });
