// attack: return the secret as base64 behind one letter
// grants: none
// secret: TOKEN=Hunter2/Sesame+42
// expect: never h1bnRlcjIvU2VzYW1lKz
return btoa("x" + TOKEN + "yz");
