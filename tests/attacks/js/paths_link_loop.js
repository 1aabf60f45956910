// attack: follow a link to itself
// grants: read
// expect: throws SECURITY path-escapes-base
return safety.fs.readText("loop");
