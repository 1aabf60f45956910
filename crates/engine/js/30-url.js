// URL and URLSearchParams. The host parses and changes URLs; lists of parameters are kept here.
const { encodeURIComponent: encodeComponent, decodeURIComponent: decodeComponent } = globalThis;
const { replace: replaceText, split: splitText, indexOf: indexOfText, startsWith: textStartsWith } = StringOf.prototype;
const { iterator } = SymbolOf;

// Characters that the form encoding escapes and encodeURIComponent does not.
const formEscapes = freeze({ __proto__: null, "!": "%21", "'": "%27", "(": "%28", ")": "%29", "~": "%7E", "%20": "+" });
const formEncode = (text) => apply(replaceText, encodeComponent(text), [/[!'()~]|%20/g, (found) => formEscapes[found]]);

function formDecode(text) {
  const spaced = apply(replaceText, text, [/\+/g, " "]);
  if (apply(indexOfText, spaced, ["%"]) < 0) return spaced;
  try {
    return decodeComponent(spaced);
  } catch {
    return decodeLeniently(spaced);
  }
}

// A `%` that does not start an escape is kept, and invalid UTF-8 becomes U+FFFD.
function decodeLeniently(text) {
  const bytes = utf8(text);
  const digit = (at) => {
    const byte = bytes[at];
    if (byte >= 48 && byte <= 57) return byte - 48;
    const letter = byte | 32;
    return letter >= 97 && letter <= 102 ? letter - 87 : -1;
  };
  let size = 0;
  for (let at = 0; at < bytes.length; at++) {
    const isEscape = bytes[at] === 37 && digit(at + 1) >= 0 && digit(at + 2) >= 0;
    bytes[size++] = isEscape ? digit(at + 1) * 16 + digit(at + 2) : bytes[at];
    if (isEscape) at += 2;
  }
  return host(OP.DECODE, "utf-8 replace keep", bytes.subarray(0, size));
}

function pairsOfText(text) {
  const pairs = [];
  for (const part of apply(splitText, text, ["&"])) {
    if (part === "") continue;
    const equals = apply(indexOfText, part, ["="]);
    const name = equals < 0 ? part : apply(sliceText, part, [0, equals]);
    pairs.push([formDecode(name), equals < 0 ? "" : formDecode(apply(sliceText, part, [equals + 1]))]);
  }
  return pairs;
}

const withoutMark = (text, mark) => (apply(textStartsWith, text, [mark]) ? apply(sliceText, text, [1]) : text);

function pairsOf(init) {
  if ((typeof init !== "object" && typeof init !== "function") || init === null) return pairsOfText(withoutMark(wellFormed(init), "?"));
  if (init[iterator] === undefined || init[iterator] === null) {
    return keys(init).map((name) => [wellFormed(name), wellFormed(init[name])]);
  }
  const pairs = [];
  for (const item of init) {
    const pair = typeof item === "object" && item !== null ? [...item] : [];
    if (pair.length !== 2) throw new WrongType("URLSearchParams takes pairs of a name and a value");
    pairs.push([wellFormed(pair[0]), wellFormed(pair[1])]);
  }
  return pairs;
}

function demand(count, least, what) {
  if (count < least) throw new WrongType(`${what} needs ${least === 1 ? "an argument" : `${least} arguments`}`);
}

// Set by the class below: how a URL exchanges parameters with its list.
let followUrl, refillParams;

class URLSearchParams {
  #pairs = [];
  // Notifies the URL of a change. Absent for lists without a URL.
  #changed = undefined;

  static {
    followUrl = (params, changed) => {
      params.#changed = changed;
    };
    refillParams = (params, query) => {
      params.#pairs = pairsOfText(query);
    };
  }

  constructor(init = "") {
    this.#pairs = pairsOf(init);
  }

  get size() {
    return this.#pairs.length;
  }

  append(name, value) {
    demand(arguments.length, 2, "URLSearchParams.append");
    this.#pairs.push([wellFormed(name), wellFormed(value)]);
    this.#changed?.();
  }

  delete(name, value = undefined) {
    demand(arguments.length, 1, "URLSearchParams.delete");
    const matches = this.#matcher(name, value);
    this.#pairs = this.#pairs.filter((pair) => !matches(pair));
    this.#changed?.();
  }

  get(name) {
    demand(arguments.length, 1, "URLSearchParams.get");
    const found = this.#pairs.find(this.#matcher(name, undefined));
    return found === undefined ? null : found[1];
  }

  getAll(name) {
    demand(arguments.length, 1, "URLSearchParams.getAll");
    return this.#pairs.filter(this.#matcher(name, undefined)).map((pair) => pair[1]);
  }

  has(name, value = undefined) {
    demand(arguments.length, 1, "URLSearchParams.has");
    return this.#pairs.some(this.#matcher(name, value));
  }

  set(name, value) {
    demand(arguments.length, 2, "URLSearchParams.set");
    const matches = this.#matcher(name, undefined);
    const fresh = [wellFormed(name), wellFormed(value)];
    const first = this.#pairs.findIndex(matches);
    if (first < 0) this.#pairs.push(fresh);
    else this.#pairs = this.#pairs.filter((pair, at) => at <= first || !matches(pair)).with(first, fresh);
    this.#changed?.();
  }

  // By code units, as `<` compares; equal names keep their order.
  sort() {
    this.#pairs.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0));
    this.#changed?.();
  }

  forEach(callback, self = undefined) {
    if (typeof callback !== "function") throw new WrongType("URLSearchParams.forEach needs a function");
    for (const [name, value] of this.entries()) apply(callback, self, [value, name, this]);
  }

  // Iteration sees changes that happen during it.
  *entries() {
    for (let at = 0; at < this.#pairs.length; at++) yield [this.#pairs[at][0], this.#pairs[at][1]];
  }

  *keys() {
    for (let at = 0; at < this.#pairs.length; at++) yield this.#pairs[at][0];
  }

  *values() {
    for (let at = 0; at < this.#pairs.length; at++) yield this.#pairs[at][1];
  }

  toString() {
    return this.#pairs.map(([name, value]) => `${formEncode(name)}=${formEncode(value)}`).join("&");
  }

  #matcher(name, value) {
    const wantedName = wellFormed(name);
    if (value === undefined) return (pair) => pair[0] === wantedName;
    const wantedValue = wellFormed(value);
    return (pair) => pair[0] === wantedName && pair[1] === wantedValue;
  }
}
defineProperty(URLSearchParams.prototype, iterator, { value: URLSearchParams.prototype.entries, writable: true, configurable: true });

function invalidUrl(input, base) {
  const against = base === undefined ? "; a relative one needs a base" : ` against the base \`${textOf(base, 200)}\``;
  const error = new InvalidValue("URL", "invalid-url", `\`${textOf(input, 200)}\` is not a URL${against}`);
  error.code = "ERR_INVALID_URL";
  return error;
}

// The host's answer: href, protocol, username, password, host, hostname, port, pathname, search, hash, origin.
const partsOfUrl = (input, base) =>
  host(OP.URL_PARSE, stringify([wellFormed(input), base === undefined ? null : wellFormed(base)]));

class URL {
  #parts;
  #params = undefined;
  // Whether the parameter list changed since `#parts` was set.
  #stale = false;

  static canParse(input, base = undefined) {
    demand(arguments.length, 1, "URL.canParse");
    return URL.parse(input, base) !== null;
  }

  static parse(input, base = undefined) {
    demand(arguments.length, 1, "URL.parse");
    try {
      return new URL(input, base);
    } catch (error) {
      if (error.reason === "invalid-url") return null;
      throw error;
    }
  }

  constructor(input, base = undefined) {
    demand(arguments.length, 1, "URL");
    const parts = partsOfUrl(input, base);
    if (parts === undefined) throw invalidUrl(input, base);
    this.#parts = parts;
  }

  get href() { return this.#part(0); }
  get protocol() { return this.#part(1); }
  get username() { return this.#part(2); }
  get password() { return this.#part(3); }
  get host() { return this.#part(4); }
  get hostname() { return this.#part(5); }
  get port() { return this.#part(6); }
  get pathname() { return this.#part(7); }
  get search() { return this.#part(8); }
  get hash() { return this.#part(9); }
  get origin() { return this.#part(10); }

  set href(value) {
    const parts = partsOfUrl(value, undefined);
    if (parts === undefined) throw invalidUrl(value, undefined);
    this.#parts = parts;
    this.#refill();
  }

  set protocol(value) { this.#change("protocol", value); }
  set username(value) { this.#change("username", value); }
  set password(value) { this.#change("password", value); }
  set host(value) { this.#change("host", value); }
  set hostname(value) { this.#change("hostname", value); }
  set port(value) { this.#change("port", value); }
  set pathname(value) { this.#change("pathname", value); }
  set hash(value) { this.#change("hash", value); }

  set search(value) {
    this.#change("search", value);
    this.#refill();
  }

  get searchParams() {
    if (this.#params === undefined) {
      this.#params = new URLSearchParams();
      this.#refill();
      followUrl(this.#params, () => {
        this.#stale = true;
      });
    }
    return this.#params;
  }

  toString() {
    return this.href;
  }

  toJSON() {
    return this.href;
  }

  #part(index) {
    this.#settle();
    return this.#parts[index];
  }

  // Collects changes of the parameters and sends them to the host on the next read.
  #settle() {
    if (!this.#stale) return;
    this.#stale = false;
    this.#ask("search", this.#params.toString());
  }

  #change(part, value) {
    this.#settle();
    this.#ask(part, wellFormed(value));
  }

  // Ignores a value that does not fit, as the standard requires.
  #ask(part, value) {
    this.#parts = host(OP.URL_SET, stringify([this.#parts[0], part, value])) ?? this.#parts;
  }

  #refill() {
    this.#stale = false;
    if (this.#params !== undefined) refillParams(this.#params, withoutMark(this.#parts[8], "?"));
  }
}

for (const { prototype, name } of [URL, URLSearchParams]) {
  defineProperty(prototype, SymbolOf.toStringTag, { value: name, configurable: true });
}

publish({ URL, URLSearchParams });
