// attack: smuggle fields into a question
// grants: read
// expect: throws INVALID_INPUT invalid-request
Object.defineProperty(Object.prototype, "toJSON", {
  configurable: true,
  value() {
    delete Object.prototype.toJSON;
    return { function: "readText", arguments: ["notes.txt"], options: [], grants: 7 };
  },
});
return safety.fs.readText("notes.txt");
