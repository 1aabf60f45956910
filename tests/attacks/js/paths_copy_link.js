// attack: bring a file from outside in by copying a link
// grants: read,write
// expect: throws SECURITY path-escapes-base
safety.fs.copy("link-out", "stolen.txt");
