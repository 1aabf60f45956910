// attack: read what is outside by any function that reads
// grants: read
// expect: never CANARY-OUTSIDE
const { fs } = safety;
const found = [];
for (const path of ["link-out", "abs-out", "dir-out/secret.txt", "dir-out"]) {
  for (const act of [
    () => fs.readText(path), () => fs.list(path), () => fs.stat(path), () => fs.grep("CANARY", path), () => fs.lineCount(path), () => fs.slice(path, 0, 9),
    () => fs.cut(path, { fields: [1] }), () => fs.sort(path), () => fs.find(path), () => fs.searchInFiles(path, "*", "CANARY"),
  ]) {
    try {
      found.push(act());
    } catch (error) {
      found.push(error.message);
    }
  }
}
return found;
