// attack: load a module of the host
// grants: none
// expect: returns ["refused","refused","refused"]
const found = [];
for (const name of ["fs", "std", "file:///etc/passwd"]) {
  try {
    found.push(typeof (await import(name)));
  } catch {
    found.push("refused");
  }
}
return found;
