// attack: have the gateway read megabytes for edits that come to nothing
// grants: read, write
// expect: execute.host_bytes
safety.fs.writeText("large.txt", "x".repeat(8000000));
for (let i = 0; i < 20; i++) {
  try {
    safety.fs.editText("large.txt", "nowhere", "");
  } catch {}
}
