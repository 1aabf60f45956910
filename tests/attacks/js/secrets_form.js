// attack: encode the secret as a form does
// grants: none
// secret: TOKEN=Hunter2 Open Sesame 42
// expect: never Hunter2+Open+Sesame+42
return new URLSearchParams({ q: TOKEN }).toString();
