// attack: learn the gateway's addresses from its refusals
// grants: fetch:strict
// expect: never 127.0.0.1
try {
  fetch("http://localhost:9/");
} catch (error) {
  return [error.message, error.stack, String(error)];
}
