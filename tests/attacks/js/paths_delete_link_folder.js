// attack: empty a folder outside through a link
// grants: write
// expect: throws SECURITY write-through-symlink
safety.fs.deleteDir("dir-out");
