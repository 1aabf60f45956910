// attack: climb out of the workspace
// grants: read
// expect: throws SECURITY path-escapes-base
return safety.fs.readText("../outside/secret.txt");
