// attack: follow a link that leads out
// grants: read
// expect: throws SECURITY path-escapes-base
return safety.fs.readText("link-out");
