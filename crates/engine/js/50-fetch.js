// `fetch`: the response is complete when it returns, and can still be awaited. The gateway checks every request.
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

class Headers {
  // Each with the name in the tool's spelling, which the gateway checks.
  #list = [];
  constructor(init) {
    if (init === undefined || init === null) return;
    if (typeof init !== "object") throw new WrongType("headers are an object, pairs or Headers");
    const pairs = init instanceof Headers ? headerPairs(init) : typeof init[SymbolOf.iterator] === "function" ? init : entries(init);
    for (const [name, value] of pairs) this.append(name, value);
  }
  static #name(name) {
    const text = `${name}`;
    if (!HEADER_NAME.test(text)) throw new WrongType(`\`${text}\` is no header name`);
    return text.toLowerCase();
  }
  static #value(value) {
    const text = `${value}`.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
    if (/[\0\r\n]/.test(text)) throw new WrongType("a header value holds no line ends");
    return text;
  }
  static #entry(name, value) {
    const written = `${name}`;
    return [Headers.#name(written), Headers.#value(value), written];
  }
  append(name, value) { this.#list.push(Headers.#entry(name, value)); }
  delete(name) { const key = Headers.#name(name); this.#list = this.#list.filter(([own]) => own !== key); }
  get(name) {
    const key = Headers.#name(name);
    const values = this.#list.filter(([own]) => own === key).map(([, value]) => value);
    return values.length ? values.join(", ") : null;
  }
  getSetCookie() { return this.#list.filter(([own]) => own === "set-cookie").map(([, value]) => value); }
  has(name) { const key = Headers.#name(name); return this.#list.some(([own]) => own === key); }
  set(name, value) {
    // Validated before anything is removed.
    const entry = Headers.#entry(name, value);
    this.#list = this.#list.filter(([own]) => own !== entry[0]);
    this.#list.push(entry);
  }
  #sorted() {
    const names = [...new Set(this.#list.map(([name]) => name))].sort();
    return names.flatMap((name) => name === "set-cookie" ? this.getSetCookie().map((value) => [name, value]) : [[name, this.get(name)]]);
  }
  static pairs(headers) { return headers.#list.map(([, value, written]) => [written, value]); }
  *entries() { yield* this.#sorted(); }
  *keys() { for (const [name] of this.#sorted()) yield name; }
  *values() { for (const [, value] of this.#sorted()) yield value; }
  forEach(callback, self) { for (const [name, value] of this.#sorted()) apply(callback, self, [value, name, this]); }
  [SymbolOf.iterator]() { return this.entries(); }
  get [SymbolOf.toStringTag]() { return "Headers"; }
}

const { pairs: headerPairs } = Headers;
delete Headers.pairs;

const STATUS_TEXT = {
  200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently", 302: "Found",
  303: "See Other", 304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized",
  403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 409: "Conflict", 410: "Gone", 415: "Unsupported Media Type",
  422: "Unprocessable Content", 429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable",
  504: "Gateway Timeout",
};

class Response {
  #body;
  #used = false;
  constructor(meta) {
    this.#body = StringOf(meta.id);
    this.status = meta.status;
    this.ok = meta.status >= 200 && meta.status < 300;
    this.statusText = STATUS_TEXT[meta.status] ?? "";
    this.url = meta.url;
    this.redirected = meta.redirected;
    this.type = "basic";
    this.headers = new Headers(meta.headers);
    this.contentType = this.headers.get("content-type");
    this.truncated = meta.nextStartIndex !== null;
    this.nextStartIndex = meta.nextStartIndex;
  }
  get bodyUsed() { return this.#used; }
  text() { this.#used = true; return host(OP.FETCHED_TEXT, this.#body); }
  json() {
    const text = this.text();
    try {
      return awaitableData(parse(text));
    } catch (error) {
      throw new ToolError("HELPER_RUNTIME", "fetch", "invalid-json", `the answer is not JSON: ${error.message}`);
    }
  }
  bytes() { this.#used = true; return awaitable(host(OP.FETCHED_BYTES, this.#body)); }
  arrayBuffer() { this.#used = true; return awaitable(host(OP.FETCHED_BYTES, this.#body).buffer); }
}

// The clock of the call, in milliseconds. A timeout counts from its creation, whatever the code does in between.
const { now: elapsed } = globalThis.performance;
const MAX_WAIT = 2 ** 31 - 1;

// Has the name that browsers use, and is a helper error like all others.
function abortError(name, message) {
  const error = new ToolError("HELPER_RUNTIME", "fetch", "aborted", message);
  defineProperty(error, "name", { value: name, writable: true, configurable: true, enumerable: false });
  return error;
}

class AbortSignal {
  #ended = false;
  #reason = undefined;
  #deadline = Infinity;
  #listeners = [];
  // For a signal made by `any`: its sources, which have no sources themselves, and the reverse links.
  #sources = [];
  #followers = [];
  static timeout(milliseconds) {
    const wait = NumberOf(milliseconds);
    if (!(wait >= 0)) throw new WrongType("AbortSignal.timeout needs milliseconds");
    const signal = new AbortSignal();
    signal.#deadline = elapsed() + Maths.min(Maths.ceil(wait), MAX_WAIT);
    return signal;
  }
  static abort(reason) { const signal = new AbortSignal(); endSignal(signal, reason); return signal; }
  static any(signals) {
    const signal = new AbortSignal();
    for (const one of signals) {
      for (const source of one.#ended || !one.#sources.length ? [one] : one.#sources) {
        signal.#sources.push(source);
        source.#followers.push(signal);
      }
    }
    signal.#look();
    return signal;
  }
  static end(signal, reason) {
    if (signal.#ended) return;
    signal.#ended = true;
    signal.#reason = reason === undefined ? abortError("AbortError", "the operation was aborted") : reason;
    for (const listener of signal.#listeners) {
      try {
        apply(listener, signal, [{ type: "abort", target: signal }]);
      } catch (error) {
        host(OP.CONSOLE, `eerror in a listener: ${textOf(error, 4000)}`);
      }
    }
    for (const follower of signal.#followers) endSignal(follower, signal.#reason);
  }
  // The remaining milliseconds, at least one; zero without a deadline.
  static wait(signal) {
    let deadline = signal.#deadline;
    for (const source of signal.#sources) deadline = Maths.min(deadline, source.#deadline);
    return deadline === Infinity ? 0 : Maths.max(Maths.ceil(deadline - elapsed()), 1);
  }
  // Called if the gateway detected the timeout first: returns the reason of the aborted request.
  static timedOut(signal) {
    if (!signal.#look()) endSignal(signal, AbortSignal.#over());
    return signal.#reason;
  }
  static #over() { return abortError("TimeoutError", "the time that the signal allows is over"); }
  // Running code is never interrupted, so a timeout takes effect on the next read.
  #look() {
    if (this.#ended) return true;
    for (const source of this.#sources) if (source.#look()) endSignal(this, source.#reason);
    if (elapsed() >= this.#deadline) endSignal(this, AbortSignal.#over());
    return this.#ended;
  }
  get aborted() { return this.#look(); }
  get reason() { this.#look(); return this.#reason; }
  throwIfAborted() { if (this.#look()) throw this.#reason; }
  addEventListener(type, listener) {
    if (type !== "abort" || this.#listeners.includes(listener)) return;
    if (typeof listener !== "function") throw new WrongType("a listener is a function");
    this.#listeners.push(listener);
    // A timer notifies listeners even if the code never reads the signal.
    const left = signalWait(this);
    if (left && !this.#ended) addTimer(() => { this.#look(); }, left, []);
  }
  removeEventListener(type, listener) { this.#listeners = this.#listeners.filter((own) => own !== listener); }
  get [SymbolOf.toStringTag]() { return "AbortSignal"; }
}
const { wait: signalWait, end: endSignal, timedOut } = AbortSignal;
for (const name of ["wait", "end", "timedOut"]) delete AbortSignal[name];

class AbortController {
  #signal = new AbortSignal();
  get signal() { return this.#signal; }
  abort(reason) { endSignal(this.#signal, reason); }
  get [SymbolOf.toStringTag]() { return "AbortController"; }
}

// Text as UTF-8, bytes of every type, forms as a browser sends them. Everything else is refused, not dropped.
function bodyOf(body, headers) {
  if (body === undefined || body === null) return undefined;
  const form = typeof URLSearchParams === "function" && body instanceof URLSearchParams;
  if (form && !headers.has("content-type")) headers.set("content-type", "application/x-www-form-urlencoded;charset=UTF-8");
  if (typeof body === "string" || form) return utf8(wellFormed(body));
  const bytes = bytesOf(body);
  if (bytes !== undefined) return bytes;
  if (ArrayOf.isArray(body)) return Bytes.from(body);
  throw invalidInput("fetch", "unsupported-body", "a body is text, bytes or URLSearchParams; use JSON.stringify for data");
}

function count(value, name) {
  if (value === undefined || value === null) return 0;
  const number = NumberOf(value);
  if (!NumberOf.isSafeInteger(number) || number < 0) throw invalidInput("fetch", "invalid-option", `\`${name}\` is a whole number of bytes`);
  return number;
}

function send(wish, body, signal) {
  try {
    return host(OP.FETCH, stringify(wish), body);
  } catch (error) {
    throw signal && error instanceof ToolError && error.reason === "aborted" ? timedOut(signal) : error;
  }
}

function fetch(input, options) {
  const given = options ?? {};
  if (typeof input !== "string" && !(typeof URL === "function" && input instanceof URL)) {
    throw invalidInput("fetch", "missing-url", "fetch needs the address as text or URL");
  }
  const headers = new Headers(given.headers);
  const body = bodyOf(given.body, headers);
  const signal = given.signal;
  if (signal !== undefined && signal !== null) {
    if (!(signal instanceof AbortSignal)) throw invalidInput("fetch", "invalid-option", "`signal` is an AbortSignal");
    signal.throwIfAborted();
  }
  const method = `${given.method ?? "GET"}`;
  const startIndex = count(given.startIndex, "startIndex");
  const maxLength = count(given.maxLength, "maxLength");
  const wish = {
    method: /^(get|head|post|put|patch|delete|options)$/i.test(method) ? method.toUpperCase() : method,
    url: `${input}`, headers: headerPairs(headers), hasBody: body !== undefined, redirect: `${given.redirect ?? "follow"}`,
    timeoutMs: signal ? signalWait(signal) : 0, startIndex, maxLength,
  };
  const meta = send(wish, body ?? new Bytes(0), signal);
  const end = startIndex + meta.length;
  meta.nextStartIndex = end < meta.fullLength ? end : null;
  return awaitable(new Response(meta));
}
