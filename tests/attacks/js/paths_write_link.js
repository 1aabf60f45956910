// attack: overwrite what a link leads to
// grants: write
// expect: throws SECURITY write-through-symlink
safety.fs.writeText("link-out", "x");
