// attack: aliases of aliases of aliases
// grants: none
// expect: returns "HELPER_RUNTIME"
let text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
for (let i = 1; i < 12; i++) text += `a${i}: &a${i} [${Array(10).fill(`*a${i - 1}`).join(",")}]\n`;
try {
  return safety.parser.yaml(text);
} catch (error) {
  return error.kind;
}
