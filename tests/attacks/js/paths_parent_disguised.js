// attack: climb out in every spelling
// grants: read
// expect: never CANARY-OUTSIDE
const found = [];
for (const path of [
  "sub/../../outside/secret.txt", "./.././outside/secret.txt", "sub//..//..//outside//secret.txt", "notes.txt/../../outside/secret.txt", "..\\outside\\secret.txt",
  "%2e%2e/outside/secret.txt", "..%2foutside/secret.txt", "\u2025/outside/secret.txt", "..\u2215outside\u2215secret.txt", "\uff0e\uff0e/outside/secret.txt", "....//outside/secret.txt",
  "dir-out/../outside/secret.txt", "dir-out/../../outside/secret.txt", " ../outside/secret.txt", "../outside/secret.txt ", "file://../outside/secret.txt",
]) {
  try {
    found.push(safety.fs.readText(path));
  } catch {}
}
return found;
