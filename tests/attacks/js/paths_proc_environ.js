// attack: read the gateway's environment
// grants: read
// expect: throws SECURITY path-escapes-base
return safety.fs.readText("/proc/self/environ");
