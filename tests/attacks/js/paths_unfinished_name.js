// attack: hide a file from every listing under the name of an unfinished write
// grants: read,write
// expect: returns true
try {
  safety.fs.writeText(".toolgate-hidden.tmp", "x");
} catch {
  return true;
}
return safety.fs.list(".").includes(".toolgate-hidden.tmp");
