// attack: flood the gateway with questions about files
// grants: read
// expect: execute.host_calls
for (let i = 0; i < 5000; i++) {
  try {
    safety.fs.exists("/outside");
  } catch {}
}
