// attack: leave through the links of /proc
// grants: read
// expect: returns []
const found = [];
for (const path of ["/proc/self/root/etc/passwd", "/proc/self/cwd", "/proc/1/environ", "/proc/self/fd/0", "/dev/fd/0"]) {
  try {
    found.push(safety.fs.readText(path).length);
  } catch (error) {
    if (error.reason !== "path-escapes-base") found.push(error.reason);
  }
}
return found;
