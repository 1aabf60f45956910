// attack: leave the secret in the record of what was asked for
// grants: read,fetch:strict
// secret: TOKEN=Hunter2/Sesame+42
// expect: never Hunter2/Sesame+42
for (const act of [
  () => safety.fs.exists(TOKEN), () => fetch(`http://127.0.0.1/${TOKEN}?key=${TOKEN}`), () => fetch("http://127.0.0.1/", { method: TOKEN }), () => fetch("http://127.0.0.1/", { headers: { "x-key": TOKEN } }),
]) {
  try {
    act();
  } catch {}
}
return "done";
