// attack: thousands of requests in one call
// grants: fetch:strict
// expect: execute.host_calls
for (let i = 0; i < 5000; i++) {
  try {
    fetch("http://127.0.0.1/");
  } catch {}
}
