// attack: fill the heap, then have a helper build beside it what has no room in it
// grants: none
// limits: memory=32 statements=1000000
// expect: execute.memory
const kept = [];
for (let i = 0; i < 26; i++) kept.push(new Uint8Array(2 ** 20).fill(1));
const aliases = Array(14).fill("*a").join(", ");
try {
  safety.parser.yaml("a: &a " + "x".repeat(2 ** 20) + "\nb: [" + aliases + "]\n");
} catch {}
return kept.length;
