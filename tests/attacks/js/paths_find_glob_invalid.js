// attack: a glob that does not parse, or is too long
// grants: read
// expect: returns ["find-invalid-glob","find-invalid-glob"]
return ["[", "a".repeat(2000)].map((glob) => {
  try {
    return safety.fs.find(".", glob);
  } catch (error) {
    return error.reason;
  }
});
