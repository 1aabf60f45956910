// attack: percent-encode a secret with marks that encodeURIComponent leaves alone
// grants: none
// secret: TOKEN=Hunter2/(Sesame)!*'42
// expect: never Hunter2%2F(Sesame)!*'42
return encodeURIComponent(TOKEN);
