// attack: have the prelude and the parsers quote names that they cut off within the secret
// grants: none
// secret: TOKEN=Hunter2+Sesame+42+Hunter3+Sesame+43!
// expect: never Hunter2
const behind = (length) => "x".repeat(length) + TOKEN;
const acts = [
  () => crypto.subtle.digest(behind(40), new Uint8Array(1)),
  () => new Intl.NumberFormat(behind(70)),
  () => new Intl.NumberFormat("en", { style: behind(70) }),
  () => new Intl.NumberFormat("en", { style: "currency", currency: behind(30) }),
  () => new Intl.DateTimeFormat("en", { timeZone: behind(70) }),
  () => structuredClone(Symbol(behind(80))),
  () => safety.parser.xml(`<${behind(70)}/>`),
  () => safety.parser.xml(`<a>&${behind(70)};</a>`),
  () => safety.parser.yaml(`${behind(265)}: 1\n${behind(265)}: 2`),
];
const said = [];
for (const act of acts) {
  try {
    await act();
  } catch (error) {
    said.push(error.message);
  }
}
// Who said nothing has proved nothing.
return said.length === acts.length ? said : `Hunter2 was quoted by ${said.length} only`;
