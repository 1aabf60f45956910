// attack: plant a file outside
// grants: write
// expect: throws SECURITY write-outside-workspace
safety.fs.writeText("../outside/planted.txt", "x");
