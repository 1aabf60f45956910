// attack: a folder whose name begins like the workspace's
// grants: read
// expect: throws SECURITY path-escapes-base
return safety.fs.readText(safety.fs.workspace() + "-twin/secret.txt");
