// Signals: aborting a request before it is sent, and the state that all holders of a signal see.
const tried = (act) => { try { return act(); } catch (error) { return error; } };
const get = (signal) => tried(() => fetch("https://example.com/", { signal }));
const described = (error) => [error.name, error.kind, error.helper, error.reason, error instanceof Error];
const ABORTED = ["AbortError", "HELPER_RUNTIME", "fetch", "aborted", true];

const controller = new AbortController();
const { signal } = controller;
const heard = [];
const unheard = () => heard.push("never");
signal.addEventListener("abort", function (event) { heard.push([event.type, event.target === signal, this === signal, signal.aborted]); });
signal.addEventListener("abort", unheard);
signal.removeEventListener("abort", unheard);
signal.addEventListener("other", unheard);
const fresh = [signal.aborted, signal.reason, get(signal).status, tried(() => signal.throwIfAborted())];
signal.aborted = true;
const forged = signal.aborted;
controller.abort();
controller.abort("again");

const mine = new Error("mine");
const own = new AbortController();
const both = AbortSignal.any([new AbortController().signal, own.signal]);
const nested = AbortSignal.any([both, AbortSignal.timeout(60_000)]);
const late = [];
nested.addEventListener("abort", () => late.push(nested.reason === mine));
const before = [both.aborted, nested.aborted];
own.abort(mine);

const broken = new AbortController();
broken.signal.addEventListener("abort", () => { throw new Error("in a listener"); });
broken.signal.addEventListener("abort", () => heard.push("after"));
broken.abort();

const cases = [
  [fresh, [false, null, 200, null]],
  [forged, false],
  [[signal.aborted, get(signal) === signal.reason, tried(() => signal.throwIfAborted()) === signal.reason], [true, true, true]],
  [described(signal.reason), ABORTED],
  [heard, [["abort", true, true, true], "after"]],
  [[before, both.aborted, both.reason === mine, nested.aborted, get(nested) === mine], [[false, false], true, true, true, true]],
  [late, [true]],
  [described(AbortSignal.abort().reason), ABORTED],
  [get(AbortSignal.abort("why")), "why"],
  [get(AbortSignal.any([AbortSignal.abort(1), AbortSignal.abort(2)])), 1],
  [AbortSignal.any([]).aborted, false],
  [tried(() => AbortSignal.any([{ aborted: false }])).name, "TypeError"],
];
const wrong = cases.filter(([value, expected]) => JSON.stringify(value) !== JSON.stringify(expected));
return wrong.length ? wrong : true;
