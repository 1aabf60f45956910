// attack: have the gateway write megabytes for two short paths
// grants: read, write
// expect: execute.host_bytes
safety.fs.writeText("large.txt", "x".repeat(8000000));
for (let i = 0; i < 20; i++) {
  try {
    safety.fs.copy("large.txt", `copy-${i}.txt`);
  } catch {}
}
