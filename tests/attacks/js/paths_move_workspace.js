// attack: move the workspace away
// grants: write
// expect: throws SECURITY move-workspace-root
safety.fs.move(".", "elsewhere");
