// attack: learn which files there are outside
// grants: read
// expect: returns [false,false,false,false,false]
return ["link-out", "abs-out", "dir-out/secret.txt", "../outside/secret.txt", "/etc/passwd"].map((path) => safety.fs.exists(path));
