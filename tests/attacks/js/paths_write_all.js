// attack: change something outside by any function that writes
// grants: read,write
// expect: returns []
const { fs } = safety;
const done = [];
for (const path of ["../outside/secret.txt", "link-out", "abs-out", "dir-out/secret.txt", "/etc/toolgate-planted", "loop"]) {
  const acts = {
    writeText: () => fs.writeText(path, "x"), appendText: () => fs.appendText(path, "x"), editText: () => fs.editText(path, "CANARY", "x", true),
    copy: () => fs.copy("notes.txt", path), move: () => fs.move("sub/a.txt", path), moveFrom: () => fs.move(path, "stolen.txt"), delete: () => fs.delete(path),
    deleteDir: () => fs.deleteDir(path),
  };
  for (const [name, act] of Object.entries(acts)) {
    try {
      act();
      done.push(`${name} ${path}`);
    } catch (error) {
      if (error.kind !== "SECURITY") done.push(`${name} ${path}: ${error.kind} ${error.reason}`);
    }
  }
}
return done;
