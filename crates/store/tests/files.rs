//! Reading, writing and walking files in real directories.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails loudly")]

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::{fs::CWD, process::geteuid};
use tempfile::TempDir;
use toolgate_store::{read_bounded, walk, write_atomic};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// The content, or the error message without the name of the directory.
fn read(folder: &TempDir, name: &str, limit: u64) -> String {
    match read_bounded(&folder.path().join(name), limit) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => error.to_string().replace(&format!("{}/", folder.path().display()), ""),
    }
}

/// The result of a walk, one path per line, relative to the directory.
fn found(folder: &TempDir, roots: &[&str]) -> String {
    let accept = |path: &Path| path.extension().is_some_and(|extension| extension == "json");
    let roots: Vec<PathBuf> = roots.iter().map(|root| folder.path().join(root)).collect();
    let base = format!("{}/", folder.path().display());
    let lines: Vec<String> = walk(roots, &accept)
        .map(|item| match item {
            Ok(path) => path.display().to_string().replace(&base, ""),
            Err(error) => error.to_string().replace(&base, ""),
        })
        .collect();
    lines.join("\n")
}

fn is_root() -> bool {
    geteuid().is_root()
}

fn make_pipe(path: &Path) {
    rustix::fs::mknodat(CWD, path, rustix::fs::FileType::Fifo, 0o644.into(), 0).expect("a pipe");
}

#[test]
fn file_is_read_up_to_the_limit() {
    let folder = folder();
    fs::write(folder.path().join("a"), "12345").unwrap();
    assert_eq!(read(&folder, "a", 5), "12345");
    assert_eq!(read(&folder, "a", u64::MAX), "12345");
    assert_eq!(read(&folder, "a", 4), "`a` has at least 5 bytes, the limit is 4");
    fs::write(folder.path().join("empty"), "").unwrap();
    assert_eq!(read(&folder, "empty", 0), "");
}

#[test]
fn file_without_a_size_is_limited_too() {
    let error = read_bounded(Path::new("/proc/self/status"), 10).unwrap_err();
    assert_eq!(error.to_string(), "`/proc/self/status` has at least 11 bytes, the limit is 10");
}

#[test]
fn error_names_the_kind_of_file() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("folder")).unwrap();
    make_pipe(&path("pipe"));
    symlink(path("pipe"), path("to-pipe")).unwrap();
    symlink("loop", path("loop")).unwrap();
    symlink("nowhere", path("dangling")).unwrap();
    fs::write(path("file"), "x").unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    assert_eq!(read(&folder, "folder", 9), "`folder` is a directory");
    assert_eq!(read(&folder, "pipe", 9), "`pipe` is a pipe, not a regular file");
    assert_eq!(read(&folder, "to-pipe", 9), "`to-pipe` is a pipe, not a regular file");
    assert_eq!(read(&folder, "socket", 9), "`socket` is a socket or device, not a regular file");
    assert_eq!(read(&folder, "loop", 9), "`loop` is a symlink loop");
    assert_eq!(read(&folder, "dangling", 9), "`dangling` does not exist");
    assert_eq!(read(&folder, "none", 9), "`none` does not exist");
    assert_eq!(read(&folder, "file/below", 9), "`file/below` does not exist");
    let device = read_bounded(Path::new("/dev/zero"), 9).unwrap_err().to_string();
    assert_eq!(device, "`/dev/zero` is a device, not a regular file");
}

#[test]
fn unreadable_file_is_reported() {
    if is_root() {
        eprintln!("skipped: root may read everything");
        return;
    }
    let folder = folder();
    fs::write(folder.path().join("a"), "x").unwrap();
    fs::set_permissions(folder.path().join("a"), fs::Permissions::from_mode(0o000)).unwrap();
    assert_eq!(read(&folder, "a", 9), "no permission to read `a`");
}

#[test]
fn write_creates_and_replaces_files() {
    let folder = folder();
    let path = folder.path().join("a.json");
    write_atomic(&path, b"one").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o133, 0, "ordinary, less the umask");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    write_atomic(&path, b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn write_through_symlink_replaces_its_target() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("real")).unwrap();
    fs::write(path("real/a"), "old").unwrap();
    symlink("real/a", path("link")).unwrap();
    symlink("link", path("link2")).unwrap();
    write_atomic(&path("link2"), b"new").unwrap();
    assert!(fs::symlink_metadata(path("link2")).unwrap().is_symlink());
    assert!(fs::symlink_metadata(path("link")).unwrap().is_symlink());
    assert_eq!(fs::read(path("real/a")).unwrap(), b"new");
    symlink("real/b", path("to-come")).unwrap();
    write_atomic(&path("to-come"), b"b").unwrap();
    assert_eq!(fs::read(path("real/b")).unwrap(), b"b");
    symlink("loop", path("loop")).unwrap();
    assert!(write_atomic(&path("loop"), b"x").is_err());
}

#[test]
fn failed_write_leaves_the_file_unchanged() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("folder")).unwrap();
    make_pipe(&path("pipe"));
    assert!(write_atomic(&path("folder"), b"x").is_err());
    assert!(write_atomic(&path("pipe"), b"x").is_err());
    assert!(write_atomic(&path("none/a"), b"x").is_err());
    assert!(write_atomic(Path::new("/"), b"x").is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    if is_root() {
        eprintln!("skipped in part: root may write everywhere");
        return;
    }
    fs::write(path("folder/a"), "old").unwrap();
    fs::set_permissions(path("folder"), fs::Permissions::from_mode(0o555)).unwrap();
    assert!(write_atomic(&path("folder/a"), b"new").is_err());
    assert_eq!(fs::read(path("folder/a")).unwrap(), b"old");
    fs::set_permissions(path("folder"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// Helper of the test below: rewrites the file until it is killed.
#[test]
fn crash_child() {
    let Some(path) = std::env::var_os(CRASH_FILE) else { return };
    for round in 0_u8.. {
        write_atomic(Path::new(&path), &version(b'a' + round % 26)).unwrap();
        if round == u8::MAX {
            return;
        }
    }
}

#[test]
fn killed_writer_leaves_a_whole_file() {
    let folder = folder();
    let path = folder.path().join("bundle.json");
    write_atomic(&path, &version(b'A')).unwrap();
    let mut versions_seen = std::collections::BTreeSet::new();
    for round in 0..24_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash_child"])
            .env(CRASH_FILE, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(10 + 7 * round % 60));
        child.kill().unwrap();
        child.wait().unwrap();
        let content = read_bounded(&path, 1 << 20).unwrap();
        let first = content[0];
        assert_eq!(content, version(first), "round {round}");
        versions_seen.insert(first);
    }
    assert!(versions_seen.len() > 1, "the child never got to write");
}

/// Large enough that a kill can interrupt a write.
fn version(letter: u8) -> Vec<u8> {
    vec![letter; 200_000 + usize::from(letter)]
}

#[test]
fn walk_is_sorted_and_skips_hidden_directories() {
    let folder = folder();
    for name in [
        "b/2.json",
        "b/10.json",
        "a.json",
        "b/x.txt",
        ".git/c.json",
        "b/.hidden/d.json",
        "target/e.json",
        "b/node_modules/f.json",
        "z/.dot.json",
        "given.txt",
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "{}").unwrap();
    }
    assert_eq!(found(&folder, &["."]).replace("./", ""), "a.json\nb/10.json\nb/2.json\nz/.dot.json");
    assert_eq!(
        found(&folder, &["given.txt", "target", "b"]),
        "given.txt\ntarget/e.json\nb/10.json\nb/2.json"
    );
    assert_eq!(found(&folder, &[".git"]), ".git/c.json");
    assert_eq!(
        found(&folder, &["none", "a.json"]),
        "cannot access `none`: No such file or directory (os error 2)\na.json"
    );
}

#[test]
fn symlink_loops_are_not_followed() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir_all(path("a/b")).unwrap();
    fs::write(path("a/b/x.json"), "{}").unwrap();
    symlink("..", path("a/b/up")).unwrap();
    symlink("b/x.json", path("a/y.json")).unwrap();
    symlink("gone.json", path("a/z.json")).unwrap();
    symlink("gone", path("a/other")).unwrap();
    symlink("a", path("link")).unwrap();
    symlink("self", path("self")).unwrap();
    let inside = |root: &str| {
        format!(
            "{root}/b/x.json\n{root}/y.json\ncannot access `{root}/z.json`: No such file or directory (os error 2)"
        )
    };
    assert_eq!(found(&folder, &["a"]), inside("a"));
    assert_eq!(found(&folder, &["link"]), inside("link"));
    assert_eq!(
        found(&folder, &["self"]),
        "cannot access `self`: Too many levels of symbolic links (os error 40)"
    );
}

#[test]
fn unreadable_directory_does_not_stop_the_walk() {
    if is_root() {
        eprintln!("skipped: root may read everything");
        return;
    }
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("a")).unwrap();
    fs::create_dir(path("b")).unwrap();
    fs::write(path("b/x.json"), "{}").unwrap();
    fs::set_permissions(path("a"), fs::Permissions::from_mode(0o000)).unwrap();
    let shown = found(&folder, &["."]).replace("./", "");
    fs::set_permissions(path("a"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(shown, "cannot access `a`: Permission denied (os error 13)\nb/x.json");
}

const CRASH_FILE: &str = "TOOLGATE_TEST_CRASH_FILE";

#[test]
fn leftover_of_a_killed_write_is_skipped() {
    let folder = folder();
    for name in [".toolgate-a1B2c3.tmp", ".toolgate-a1B2c3.json", "tool.json"] {
        fs::write(folder.path().join(name), "{}").expect("a file");
    }
    assert_eq!(found(&folder, &[""]), "tool.json");
    write_atomic(&folder.path().join("tool.json"), b"new").expect("leftovers do not matter");
    assert_eq!(read(&folder, "tool.json", 10), "new");
    assert_eq!(
        found(&folder, &[".toolgate-a1B2c3.json"]),
        ".toolgate-a1B2c3.json",
        "a named file is not skipped"
    );
}
