// attack: return a secret of four characters as base64 behind one letter
// grants: none
// secret: TOKEN=k7#x
// expect: never s3I3
return btoa("x" + TOKEN + "y");
