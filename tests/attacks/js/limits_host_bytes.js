// attack: flood the gateway with bytes that are refused only there
// grants: read
// limits: statements=5000000
// expect: execute.host_bytes
const path = "x".repeat(9000000);
for (let i = 0; i < 12; i++) {
  try {
    safety.fs.exists(path);
  } catch {}
}
