// attack: a short text that becomes a long tree, and an attempt to go on after it
// grants: none
// limits: memory=8 statements=1000000
// expect: execute.memory
const element = "<a>" + "\x01".repeat(50) + "</a>";
try {
  return safety.parser.xml("<r>" + element.repeat(45000) + "</r>").children.length;
} catch {}
return "went on";
