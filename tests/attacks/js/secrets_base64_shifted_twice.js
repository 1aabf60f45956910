// attack: return the secret as base64 behind two letters
// grants: none
// secret: TOKEN=Hunter2/Sesame+42
// expect: never IdW50ZXIyL1Nlc2FtZSs0M
return btoa("xx" + TOKEN + "yz");
