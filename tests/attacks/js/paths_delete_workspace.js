// attack: delete the workspace itself
// grants: write
// expect: throws SECURITY deletedir-workspace-root
safety.fs.deleteDir("sub/..");
