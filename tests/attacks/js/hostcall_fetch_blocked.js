// attack: fetch without being allowed to
// grants: read,write
// expect: returns ["undefined","undefined"]
return [typeof fetch, typeof Response];
