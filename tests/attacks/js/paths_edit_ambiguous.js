// attack: change more places than were looked at
// grants: read,write
// expect: throws INVALID_INPUT edit-ambiguous
safety.fs.editText("notes.txt", "o", "0");
