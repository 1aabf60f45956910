// Timers, run one after another when no promise job is left. The host waits, at most until the deadline.
const timers = [];
const MAX_TIMERS = 1000;
let lastTimer = 0;
let timerClock = 0;

function addTimer(callback, delay, values, interval) {
  if (typeof callback !== "function") throw new WrongType("a timer needs a function");
  if (timers.length >= MAX_TIMERS) throw new RangeError(`more than ${MAX_TIMERS} timers`);
  const wait = Maths.min(Maths.max(NumberOf(delay) || 0, interval === undefined ? 0 : 1), 2 ** 31 - 1);
  timers.push({ id: ++lastTimer, at: timerClock + wait, callback, values, interval: interval === undefined ? undefined : wait });
  return lastTimer;
}

function clearTimer(id) {
  const place = timers.findIndex((timer) => timer.id === id);
  if (place >= 0) timers.splice(place, 1);
}

// Runs the next timer; false if there is none. Time passes only by waiting, so the order of timers depends only on their delays.
function tick() {
  if (!timers.length) return false;
  let next = timers[0];
  for (const timer of timers) if (timer.at < next.at) next = timer;
  if (next.at > timerClock) {
    host(OP.SLEEP, StringOf(Maths.ceil(next.at - timerClock)));
    timerClock = next.at;
  }
  if (next.interval === undefined) clearTimer(next.id);
  else next.at += next.interval;
  // An error in a timer fails the tool only if the tool awaited it; otherwise it is logged.
  try {
    apply(next.callback, undefined, next.values);
  } catch (error) {
    host(OP.CONSOLE, `eerror in a timer: ${textOf(error, 4000)}`);
  }
  return true;
}

publish({
  setTimeout: function (callback, delay, ...values) { return addTimer(callback, delay, values); },
  setInterval: function (callback, delay, ...values) { return addTimer(callback, delay, values, true); },
  clearTimeout: function (id) { clearTimer(id); },
  clearInterval: function (id) { clearTimer(id); },
});
