use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

struct Workspace {
    dir: TempDir,
    documents: Documents,
}

impl Workspace {
    /// `count` tools, all read.
    fn with(count: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("tools")).unwrap();
        let mut workspace = Self { dir, documents: Documents::default() };
        for number in 0..count {
            workspace.write(&format!("t{number:03}.json"), &format!("t{number:03}"));
        }
        workspace.update(&FileChanges::Everything);
        assert_eq!(workspace.documents.parsed, count);
        workspace
    }

    fn path(&self, file: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join("tools").join(file)
    }

    fn write(&self, file: &str, name: &str) {
        fs::write(self.path(file), document(name)).unwrap();
    }

    fn update(&mut self, changes: &FileChanges) {
        self.documents.update(&[self.dir.path().join("tools")], changes);
    }

    /// Updates after changes of these files. Returns the names of all tools, and the number of parsed files.
    fn after(&mut self, changed: &[&str]) -> (Vec<String>, usize) {
        let changed = changed.iter().map(|file| self.path(file)).collect();
        self.update(&FileChanges::Paths(changed));
        let names = self.documents.tools().map(|(_, _, tool)| tool.check.name.clone()).collect();
        (names, self.documents.parsed)
    }
}

fn document(name: &str) -> String {
    serde_json::json!({
        "name": name, "description": "Says nothing, for tests.", "codeType": "Javascript", "code": "return 1", "params": [],
    })
    .to_string()
}

#[test]
fn one_edit_parses_one_file() {
    let mut workspace = Workspace::with(100);
    workspace.write("t007.json", "other");
    let (names, parsed) = workspace.after(&["t007.json"]);
    assert_eq!((names.len(), names[7].as_str(), parsed), (100, "other", 1));
}

#[test]
fn unchanged_bytes_are_not_parsed() {
    let mut workspace = Workspace::with(100);
    workspace.write("t007.json", "t007");
    assert_eq!(workspace.after(&["t007.json"]).1, 0);
    workspace.update(&FileChanges::Everything);
    assert_eq!(workspace.documents.parsed, 0);
}

/// An edit can leave size and modification time unchanged, so only the bytes count.
#[test]
fn changed_bytes_with_the_same_metadata_are_parsed() {
    let mut workspace = Workspace::with(1);
    let modified = fs::metadata(workspace.path("t000.json")).unwrap().modified().unwrap();
    workspace.write("t000.json", "t0OO");
    fs::File::options()
        .write(true)
        .open(workspace.path("t000.json"))
        .unwrap()
        .set_modified(modified)
        .unwrap();
    workspace.update(&FileChanges::Everything);
    assert_eq!(workspace.documents.tools().next().unwrap().2.check.name, "t0OO");
}

#[test]
fn files_come_and_go_in_order() {
    let mut workspace = Workspace::with(3);
    workspace.write("t0005.json", "new");
    fs::remove_file(workspace.path("t001.json")).unwrap();
    let (names, parsed) = workspace.after(&["t0005.json", "t001.json"]);
    assert_eq!((names, parsed), (["t000", "new", "t002"].map(str::to_owned).to_vec(), 1));
    fs::rename(workspace.path("t0005.json"), workspace.path("t002.json")).unwrap();
    let (names, _) = workspace.after(&["t0005.json", "t002.json"]);
    assert_eq!(names, ["t000", "new"]);
    // Neither is a tool document.
    fs::write(workspace.path("notes.txt"), document("notes")).unwrap();
    fs::write(workspace.path("list.json"), "[1]").unwrap();
    assert_eq!(workspace.after(&["notes.txt", "list.json"]).0, ["t000", "new"]);
}

/// The watcher reports a renamed directory once, without its files.
#[test]
fn renamed_directories_are_read_whole() {
    let mut workspace = Workspace::with(1);
    fs::create_dir_all(workspace.path("sub/deep")).unwrap();
    workspace.write("sub/deep/x.json", "x");
    assert_eq!(workspace.after(&["sub"]).0, ["x", "t000"]);
    fs::rename(workspace.path("sub"), workspace.path("zub")).unwrap();
    assert_eq!(workspace.after(&["sub", "zub"]).0, ["t000", "x"]);
    fs::rename(workspace.path("zub"), workspace.dir.path().join("away")).unwrap();
    assert_eq!(workspace.after(&["zub"]).0, ["t000"]);
    // Hidden directories are skipped.
    fs::create_dir(workspace.path(".hidden")).unwrap();
    workspace.write(".hidden/y.json", "y");
    assert_eq!(workspace.after(&[".hidden/y.json"]).0, ["t000"]);
}

/// A symlink or hard link can change without a report about its path in the workspace.
#[test]
fn aliased_files_are_read_in_every_update() {
    let mut workspace = Workspace::with(2);
    let outside = workspace.dir.path().join("outside.json");
    fs::write(&outside, document("one")).unwrap();
    symlink(&outside, workspace.path("s.json")).unwrap();
    fs::hard_link(workspace.path("t001.json"), workspace.dir.path().join("t001.json")).unwrap();
    workspace.update(&FileChanges::Everything);
    fs::write(&outside, document("two")).unwrap();
    fs::write(workspace.dir.path().join("t001.json"), document("three")).unwrap();
    assert_eq!(workspace.after(&[]), (["two", "t000", "three"].map(str::to_owned).to_vec(), 2));
}

#[test]
fn replaced_root_is_read_whole() {
    let mut workspace = Workspace::with(2);
    let [old, new] = ["old", "new"].map(|name| workspace.dir.path().join(name));
    fs::rename(workspace.dir.path().join("tools"), &old).unwrap();
    fs::create_dir(&new).unwrap();
    symlink(&new, workspace.dir.path().join("tools")).unwrap();
    fs::write(new.join("n.json"), document("n")).unwrap();
    workspace.update(&FileChanges::default());
    assert_eq!(
        workspace.documents.tools().map(|(_, _, tool)| tool.check.name.as_str()).collect::<Vec<_>>(),
        ["n"]
    );
}

#[test]
fn broken_files_are_reported_until_they_are_fixed() {
    let mut workspace = Workspace::with(2);
    fs::write(workspace.path("t000.json"), "{").unwrap();
    assert_eq!(workspace.after(&["t000.json"]).0, ["t001"]);
    assert_eq!(workspace.documents.unread().count(), 1);
    assert_eq!(workspace.after(&[]).1, 0, "the problem is kept");
    assert_eq!(workspace.documents.unread().count(), 1);
    workspace.write("t000.json", "t000");
    assert_eq!(workspace.after(&["t000.json"]).0, ["t000", "t001"]);
    assert_eq!(workspace.documents.unread().count(), 0);
}
