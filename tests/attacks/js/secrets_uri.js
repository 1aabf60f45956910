// attack: encode the secret as part of an address
// grants: none
// secret: TOKEN=Hunter2/Open Sesame+42
// expect: never Hunter2/Open%20Sesame+42
return encodeURI(TOKEN);
