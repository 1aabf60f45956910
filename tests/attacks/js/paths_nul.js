// attack: cut the path short behind the check
// grants: read
// expect: throws INVALID_INPUT invalid-path
return safety.fs.readText("notes.txt\0/../../outside/secret.txt");
