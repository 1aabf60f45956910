// attack: limits below zero and beyond every integer
// grants: read
// expect: returns ["invalid-options","invalid-argument","invalid-argument"]
const reason = (limit) => {
  try {
    return safety.fs.grep("hello", "notes.txt", { limit });
  } catch (error) {
    return error.reason;
  }
};
return [reason(-1), reason(1.5), reason("99999999999999999999")];
