// attack: carry a file out
// grants: write
// expect: throws SECURITY write-outside-workspace
safety.fs.move("notes.txt", "../outside/notes.txt");
