// attack: return the secret percent-encoded
// grants: none
// secret: TOKEN=Hunter2/Sesame+42
// expect: never Hunter2%2FSesame%2B42
return encodeURIComponent(TOKEN);
