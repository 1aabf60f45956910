// attack: rewrite a granted question into one that is not, on its way through JSON.stringify
// grants: read
// expect: throws SECURITY write-not-granted
Object.defineProperty(Object.prototype, "toJSON", {
  configurable: true,
  value() {
    delete Object.prototype.toJSON;
    return { function: "writeText", arguments: ["planted.txt", "x"], options: [] };
  },
});
return safety.fs.readText("notes.txt");
