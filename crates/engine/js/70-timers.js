// Timers, run one after the other when no promise job is left. Waiting is done by the host, up to the deadline.
const timers = [];
let lastTimer = 0;
function tick() {
  return false;
}
