// attack: name a file of the host by its whole path
// grants: read
// expect: throws SECURITY path-escapes-base
return safety.fs.readText("/etc/passwd");
