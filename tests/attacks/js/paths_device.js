// attack: read without end
// grants: read
// expect: throws SECURITY path-escapes-base
return safety.fs.readText("/dev/zero").length;
