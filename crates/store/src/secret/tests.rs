//! Secrets in real directories: created once and kept private.

use std::{
    collections::HashSet,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use super::secret_bytes;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn problem(folder: &Path, name: &str) -> String {
    secret_bytes(folder, name).unwrap_err().to_string()
}

#[test]
fn secret_is_created_once_and_private() {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("deep").join("state");
    let first = secret_bytes(&folder, "seal.key").unwrap();
    assert_eq!(secret_bytes(&folder, "seal.key").unwrap(), first);
    assert_ne!(secret_bytes(&folder, "other.key").unwrap(), first);
    assert_eq!((mode(&folder), mode(&folder.join("seal.key"))), (0o700, 0o600));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing unfinished is left");
}

#[test]
fn concurrent_processes_get_the_same_secret() {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("state");
    let found: HashSet<[u8; 32]> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..16).map(|_| scope.spawn(|| secret_bytes(&folder, "key").unwrap())).collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    assert_eq!(found.len(), 1);
}

#[test]
fn file_that_others_can_read_or_replace_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("state");
    secret_bytes(&folder, "key").unwrap();
    for mode in [0o640, 0o604, 0o620] {
        fs::set_permissions(folder.join("key"), fs::Permissions::from_mode(mode)).unwrap();
        assert!(
            problem(&folder, "key").contains("other users can read or write it; run `chmod 600 "),
            "{mode:o}"
        );
    }
    fs::set_permissions(folder.join("key"), fs::Permissions::from_mode(0o400)).unwrap();
    secret_bytes(&folder, "key").unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(problem(&folder, "key").contains("other users can write to the directory; run `chmod 700 "));
}

#[test]
fn symlink_short_file_and_directory_are_rejected() {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    secret_bytes(folder, "known").unwrap();
    symlink(folder.join("known"), folder.join("link")).unwrap();
    secret_bytes(folder, "link").unwrap_err();
    for (name, size) in [("short", 31), ("long", 33), ("empty", 0)] {
        fs::write(folder.join(name), vec![7; size]).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(problem(folder, name).contains("is not 32 bytes long"), "{name}");
    }
    fs::create_dir(folder.join("folder")).unwrap();
    assert!(problem(folder, "folder").contains("not a regular file"));
}

#[test]
fn secret_name_cannot_leave_the_directory() {
    let base = tempfile::tempdir().unwrap();
    for name in ["", "..", "../key", "a/b", ".hidden", "a\0b", "ü"] {
        assert!(problem(base.path(), name).contains("letters, digits"), "{name:?}");
    }
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}
