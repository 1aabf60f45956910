// attack: ask for a function that does not exist by a name that every object has
// grants: read,write
// expect: throws INVALID_INPUT unknown-function
Object.defineProperty(Object.prototype, "toJSON", {
  configurable: true,
  value() {
    delete Object.prototype.toJSON;
    return { function: "constructor", arguments: [], options: [] };
  },
});
return safety.fs.readText("notes.txt");
