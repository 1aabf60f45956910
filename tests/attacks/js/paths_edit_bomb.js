// attack: an edit that makes a small file very large
// grants: read,write
// expect: throws HELPER_RUNTIME file-too-large
safety.fs.editText("notes.txt", "l", "x".repeat(5000000), true);
