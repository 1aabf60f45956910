// attack: read a file by its address
// grants: fetch:open
// expect: throws SECURITY unsupported-scheme
fetch("file:///etc/passwd");
