// A signal's timeout counts from its creation, and the remaining time is sent with the request.
const tried = (act) => { try { return act(); } catch (error) { return error; } };
const described = (error) => [error.name, error.kind, error.helper, error.reason, error instanceof Error];
const OVER = ["TimeoutError", "HELPER_RUNTIME", "fetch", "aborted", true];
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const wait = (signal) => fetch("https://example.com/", { signal }).json().timeoutMs;

const long = AbortSignal.timeout(600_000);
const short = AbortSignal.timeout(15);
const heard = [];
short.addEventListener("abort", () => heard.push("short"));
const either = AbortSignal.any([long, short]);
// On a slow machine the time may be over before a listener is added.
const early = either.aborted;
either.addEventListener("abort", () => heard.push("either"));
const first = wait(long);
const known = first > 0 && first <= 600_000;
const atOnce = wait(AbortSignal.any([new AbortController().signal, long]));
await sleep(20);
const later = wait(long);

// The echo returns the gateway's timeout error for this request.
const slow = AbortSignal.timeout(300_000);
const ended = tried(() => fetch("https://example.com/silent", { signal: slow }));

const cases = [
  [[known, atOnce > 0 && atOnce <= first, later <= 600_000 - 20], [true, true, true]],
  [long.aborted, false],
  [[short.aborted, described(short.reason)], [true, OVER]],
  [[either.aborted, either.reason === short.reason], [true, true]],
  [heard, early ? ["short"] : ["short", "either"]],
  // The request is not sent: the echo would have answered it.
  [tried(() => fetch("https://example.com/", { signal: short })) === short.reason, true],
  [tried(() => short.throwIfAborted()) === short.reason, true],
  [described(ended), OVER],
  [[slow.aborted, slow.reason === ended], [true, true]],
  [tried(() => AbortSignal.timeout("soon")).name, "TypeError"],
  [tried(() => AbortSignal.timeout(-1)).name, "TypeError"],
  [wait(AbortSignal.timeout(Infinity)) > 2 ** 30, true],
];
const wrong = cases.filter(([value, expected]) => JSON.stringify(value) !== JSON.stringify(expected));
return wrong.length ? wrong : true;
