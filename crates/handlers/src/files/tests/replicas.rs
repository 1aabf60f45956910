//! Copies of a workspace for test runs.

use std::{collections::BTreeSet, os::unix::fs::PermissionsExt as _};

use super::*;

fn names_below(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            names.insert(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
            if path.is_dir() && !path.is_symlink() {
                waiting.push(path);
            }
        }
    }
    names
}

#[test]
fn copy_contains_files_directories_modes_and_symlinks() {
    let ground = Ground::new();
    ground.put("ws/a/b.txt", "text");
    ground.put("ws/run.sh", "#!/bin/sh");
    fs::set_permissions(ground.path("ws/run.sh"), fs::Permissions::from_mode(0o500)).unwrap();
    ground.link("ws/inside", "a/b.txt");
    ground.link("ws/outside", ground.path("out/secret"));
    let to = TempDir::new().unwrap();
    ground.files().replicate(to.path(), 1_000).unwrap();
    let expected = ["a", "a/b.txt", "inside", "outside", "run.sh"];
    assert_eq!(names_below(to.path()), BTreeSet::from(expected.map(str::to_owned)));
    assert_eq!(fs::read_to_string(to.path().join("inside")).unwrap(), "text");
    assert!(to.path().join("outside").is_symlink(), "the content behind a symlink is not copied");
    assert_eq!(to.path().join("run.sh").metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn copied_directories_are_private() {
    let ground = Ground::new();
    ground.put("ws/keys/inner/one", "text");
    for (name, mode) in [("keys", 0o755), ("keys/inner", 0o777)] {
        let folder = ground.path("ws").join(name);
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
    }
    let to = TempDir::new().unwrap();
    ground.files().replicate(to.path(), 1_000).unwrap();
    for name in ["keys", "keys/inner"] {
        let mode = to.path().join(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{name}");
    }
}

#[test]
fn copy_excludes_blocked_files_under_every_name() {
    let ground = Ground::new();
    ground.put("ws/.env", CANARY);
    ground.put("ws/seen.txt", "text");
    ground.put("ws/keys/one", CANARY);
    fs::hard_link(ground.path("ws/.env"), ground.path("ws/alias.txt")).unwrap();
    let blocked = [pattern("$WORKSPACE/**/.env*"), pattern(&ground.text_path("ws/keys"))];
    let files = ground.files_with(|grants| grants.blocked = blocked.into());
    let to = TempDir::new().unwrap();
    files.replicate(to.path(), 1_000).unwrap();
    assert_eq!(names_below(to.path()), BTreeSet::from(["seen.txt".to_owned()]));
}

#[test]
fn copy_is_bounded() {
    let ground = Ground::new();
    ground.put("ws/a.txt", "12345");
    ground.put("ws/b.txt", "12345");
    let copy = |bytes, entries| {
        let to = TempDir::new().unwrap();
        let files = ground.files_with(|grants| grants.caps.walked = entries);
        files.replicate(to.path(), bytes).is_ok()
    };
    assert!(copy(10, 2));
    assert!(!copy(9, 2), "too many bytes");
    assert!(!copy(10, 1), "too many entries");
}
