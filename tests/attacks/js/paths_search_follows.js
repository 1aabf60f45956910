// attack: search through the links
// grants: read
// expect: returns []
return safety.fs.searchInFiles(".", "*", "CANARY");
