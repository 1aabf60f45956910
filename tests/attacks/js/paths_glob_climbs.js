// attack: climb out by the glob
// grants: read
// expect: returns []
return [...safety.fs.find(".", "../*"), ...safety.fs.find(".", "../outside/*"), ...safety.fs.find("sub", "**/secret.txt")];
