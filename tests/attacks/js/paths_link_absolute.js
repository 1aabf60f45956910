// attack: follow a link with an absolute target
// grants: read
// expect: throws SECURITY path-escapes-base
return safety.fs.readText("abs-out");
