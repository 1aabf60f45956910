//! Each test has a workspace, and next to it a directory that no tool may see.

mod attacks;
mod judged_paths;
mod lines;
mod policy;
mod property;
mod races;
mod reads;
mod redaction;
mod replicas;
mod walks;
mod writes;

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use toolgate_spec::PathPattern;

use super::*;

const CANARY: &str = "CANARY outside of every root";

struct Ground {
    dir: TempDir,
    /// The gateway's state.
    state: TempDir,
}

impl Ground {
    /// `ws` is the workspace, `lib` a further read root, `out` is outside and contains the canary.
    fn new() -> Self {
        let ground = Self { dir: TempDir::new().unwrap(), state: TempDir::new().unwrap() };
        for folder in ["ws", "lib", "out/deep"] {
            fs::create_dir_all(ground.path(folder)).unwrap();
        }
        ground.put("out/secret", CANARY);
        ground.put("out/deep/secret", CANARY);
        ground
    }

    fn path(&self, inside: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(inside)
    }

    fn text_path(&self, inside: &str) -> String {
        self.path(inside).to_str().unwrap().to_owned()
    }

    fn put(&self, inside: &str, content: impl AsRef<[u8]>) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn link(&self, inside: &str, to: impl AsRef<Path>) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }

    fn content(&self, inside: &str) -> String {
        fs::read_to_string(self.path(inside)).unwrap()
    }

    fn grants(&self) -> FileGrants {
        FileGrants {
            pattern_workspace: self.path("ws"),
            workspace: self.path("ws"),
            read_roots: Vec::new(),
            home: self.path("home"),
            rights: FileRights::ReadWrite,
            allowed: vec![pattern("/")],
            blocked: Vec::new(),
            own: Vec::new(),
            locks: self.state.path().join("turns"),
            caps: FileCaps::default(),
        }
    }

    fn files(&self) -> Files {
        open(&self.grants())
    }

    fn files_with(&self, change: impl FnOnce(&mut FileGrants)) -> Files {
        let mut grants = self.grants();
        change(&mut grants);
        open(&grants)
    }

    fn is_untouched(&self) -> bool {
        self.content("out/secret") == CANARY
            && self.content("out/deep/secret") == CANARY
            && fs::read_dir(self.path("out")).unwrap().count() == 2
            && fs::read_dir(self.path("out/deep")).unwrap().count() == 1
    }
}

fn open(grants: &FileGrants) -> Files {
    Files::open(grants, || false).unwrap()
}

fn pattern(text: &str) -> PathPattern {
    PathPattern::parse(text).unwrap()
}

/// `CLASS helper reason`; the message is one line and names no directory outside.
#[track_caller]
fn refused<T: fmt::Debug>(result: Result<T, FileError>, expect: &str) {
    let error = result.unwrap_err();
    let helper = error.helper.strip_prefix("safety.fs.").unwrap_or(error.helper);
    assert_eq!(format!("{} {helper} {}", error.class.code(), error.reason), expect, "{error}");
    assert!(!error.message.contains(['\n', '\r', '\0']), "{error}");
    assert!(!error.message.ends_with('.') && !error.message.contains("os error"), "{error}");
}

/// The error of every function that takes a path.
fn everything_said_about(files: &Files, path: &str) -> Vec<String> {
    let plain = CutOptions { fields: vec![1], ..CutOptions::default() };
    vec![
        format!("{:?}", files.read_text(path)),
        format!("{:?}", files.list(path)),
        format!("{:?}", files.stat(path)),
        format!("{:?}", files.grep("CANARY", path, GrepOptions::default())),
        format!("{:?}", files.line_count(path)),
        format!("{:?}", files.slice(path, 0, 9)),
        format!("{:?}", files.cut(path, &plain)),
        format!("{:?}", files.sort(path, SortOptions::default())),
        format!("{:?}", files.find(path, "*", FindOptions::default())),
        format!("{:?}", files.search_in_files(path, "*", "CANARY", SearchOptions::default())),
        format!("{:?}", files.copy(path, "copied").and_then(|_| files.read_text("copied"))),
        format!("{:?}", files.edit_text(path, "CANARY", "gone", Occurrences::All)),
    ]
}
