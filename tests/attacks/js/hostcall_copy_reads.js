// attack: read by copying with the right to write only
// grants: write
// expect: throws SECURITY read-not-granted
safety.fs.copy("notes.txt", "copy.txt");
