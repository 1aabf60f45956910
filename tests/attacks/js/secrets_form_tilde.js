// attack: encode a secret with a tilde as a form does
// grants: none
// secret: TOKEN=abc8Q~Hunter2.Sesame
// expect: never Hunter2
return [String(new URLSearchParams({ q: TOKEN })), encodeURIComponent(TOKEN).replaceAll("~", "%7e")];
