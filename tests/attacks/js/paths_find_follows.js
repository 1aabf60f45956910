// attack: list what is behind the links
// grants: read
// expect: returns []
return safety.fs.find(".", "secret*");
