// attack: see the clock move by less than a millisecond
// grants: none
// expect: returns true
let last = Date.now();
for (let i = 0; i < 20000; i++) {
  const now = i % 2 ? Date.now() : new Date().getTime();
  if (now !== last && (!Number.isInteger(now) || Math.abs(now - last) < 1)) return now - last;
  last = now;
}
return true;
