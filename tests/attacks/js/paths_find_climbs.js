// attack: begin the walk above the workspace
// grants: read
// expect: throws SECURITY path-escapes-base
return safety.fs.find("..", "*");
