// attack: go through a linked folder
// grants: read
// expect: throws SECURITY path-escapes-base
return safety.fs.readText("dir-out/secret.txt");
