// attack: fill the list of timers
// grants: none
// expect: returns "RangeError"
try {
  for (let i = 0; i < 5000; i++) setTimeout(() => {}, 1e9);
} catch (error) {
  return error.name;
}
