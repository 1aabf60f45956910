// attack: plant a file through a linked folder
// grants: write
// expect: throws SECURITY write-outside-workspace
safety.fs.writeText("dir-out/planted.txt", "x");
