// attack: measure time finer than a millisecond
// grants: none
// expect: returns true
for (let i = 0; i < 20000; i++) if (!Number.isInteger(performance.now())) return performance.now();
return Number.isInteger(performance.timeOrigin);
