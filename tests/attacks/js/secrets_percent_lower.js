// attack: percent-encode with small digits
// grants: none
// secret: TOKEN=Hunter2/Sesame+42
// expect: never Hunter2%2fSesame%2b42
return encodeURIComponent(TOKEN).replace(/%../g, (escape) => escape.toLowerCase());
