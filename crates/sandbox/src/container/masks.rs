//! Masks for hidden files, and the search for their hard links.

use std::{
    collections::BTreeSet,
    fs::{self, Metadata, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// An empty file and an empty directory without any permissions, removed on drop.
#[derive(Debug)]
pub(super) struct Masks {
    dir: TempDir,
}

/// Device and inode: identifies a file independently of its path.
pub(super) type FileId = (u64, u64);

/// A hidden path that exists.
#[derive(Debug)]
pub(super) struct HiddenPath {
    pub(super) real: PathBuf,
    pub(super) about: Metadata,
    /// If set, only its first files are compared with others.
    pub(super) is_large: bool,
}

impl Masks {
    pub(super) fn make() -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("toolgate-masks-").tempdir()?;
        fs::write(dir.path().join(FILE), b"")?;
        fs::create_dir(dir.path().join(DIR))?;
        for name in [FILE, DIR] {
            fs::set_permissions(dir.path().join(name), Permissions::from_mode(0o000))?;
        }
        Ok(Self { dir })
    }

    /// The mask for a file of this type.
    pub(super) fn over(&self, about: &Metadata) -> PathBuf {
        self.dir.path().join(if about.is_dir() { DIR } else { FILE })
    }
}

/// The hidden paths that exist, and those that we may not access. A missing path needs no mask, and a mask needs a
/// target.
pub(super) fn existing(hidden: &[PathBuf], large: &[PathBuf]) -> io::Result<(Vec<HiddenPath>, Vec<PathBuf>)> {
    let (mut found, mut unseen) = (Vec::new(), Vec::new());
    for path in hidden {
        match fs::canonicalize(path) {
            Ok(real) => {
                let about = fs::symlink_metadata(&real)?;
                found.push(HiddenPath { real, about, is_large: large.contains(path) });
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => unseen.push(path.clone()),
            Err(error) => return Err(error),
        }
    }
    Ok((found, unseen))
}

/// Hard links of hidden files below `places`.
pub(super) fn other_names(hidden: &[HiddenPath], places: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut budget = MAX_NAMES;
    let mut aliased = BTreeSet::new();
    for one in hidden {
        let mut see = |_: &Path, about: &Metadata| aliased.extend((about.nlink() > 1).then_some(id(about)));
        // Files that we may not read cannot be read by our children either.
        if one.is_large {
            let mut first = MAX_NAMES_IN_LARGE;
            let seen = each_file(&one.real, Closed::PassOver, &mut first, &mut see);
            if first > 0 {
                seen?;
            }
        } else {
            each_file(&one.real, Closed::PassOver, &mut budget, &mut see)?;
        }
    }
    let mut names = Vec::new();
    if aliased.is_empty() {
        return Ok(names);
    }
    for place in places {
        each_file(place, Closed::Refuse, &mut budget, &mut |path, about| {
            if aliased.contains(&id(about)) {
                names.push(path.to_owned());
            }
        })?;
    }
    Ok(names)
}

pub(super) fn id(about: &Metadata) -> FileId {
    (about.dev(), about.ino())
}

/// Treatment of directories that we may not read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Closed {
    PassOver,
    Refuse,
}

/// Calls `see` for every file at and below a path, without following symlinks.
fn each_file(
    top: &Path,
    closed: Closed,
    budget: &mut u32,
    see: &mut dyn FnMut(&Path, &Metadata),
) -> io::Result<()> {
    let mut waiting = vec![top.to_owned()];
    while let Some(path) = waiting.pop() {
        *budget = budget.checked_sub(1).ok_or_else(|| {
            io::Error::other(format!(
                "more than {MAX_NAMES} files would have to be compared with hidden files; bind less"
            ))
        })?;
        let about = match fs::symlink_metadata(&path) {
            Ok(about) => about,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if about.is_dir() {
            let entries = match fs::read_dir(&path) {
                Err(error)
                    if error.kind() == io::ErrorKind::PermissionDenied && closed == Closed::PassOver =>
                {
                    continue;
                }
                entries => entries?,
            };
            for entry in entries {
                waiting.push(entry?.path());
            }
        } else {
            see(&path, &about);
        }
    }
    Ok(())
}

const FILE: &str = "file";
const DIR: &str = "dir";
const MAX_NAMES: u32 = 200_000;
const MAX_NAMES_IN_LARGE: u32 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_no_permissions_and_are_removed_on_drop() {
        let masks = Masks::make().unwrap();
        let file = fs::metadata(masks.dir.path().join(FILE)).unwrap();
        let dir = fs::metadata(masks.dir.path().join(DIR)).unwrap();
        assert_eq!((file.mode() & 0o777, dir.mode() & 0o777), (0, 0));
        let (over_file, over_dir) = (masks.over(&file), masks.over(&dir));
        assert!(over_file.ends_with(FILE) && over_dir.ends_with(DIR));
        drop(masks);
        assert!(!over_file.exists() && !over_dir.exists());
    }

    #[test]
    fn hard_links_of_hidden_files_are_found_without_following_symlinks() {
        let dir = tempfile::tempdir().unwrap();
        let (secrets, work) = (dir.path().join("secrets"), dir.path().join("work"));
        fs::create_dir_all(secrets.join("deep")).unwrap();
        fs::create_dir_all(work.join("deep")).unwrap();
        fs::write(secrets.join("deep/key"), "x").unwrap();
        fs::write(work.join("plain"), "x").unwrap();
        fs::hard_link(secrets.join("deep/key"), work.join("deep/alias")).unwrap();
        std::os::unix::fs::symlink("/", work.join("everything")).unwrap();
        let (hidden, unseen) = existing(&[secrets, dir.path().join("absent")], &[]).unwrap();
        assert_eq!((hidden.len(), unseen.len()), (1, 0));
        let names = other_names(&hidden, std::slice::from_ref(&work)).unwrap();
        assert_eq!(names, [work.join("deep/alias")]);
    }

    #[test]
    fn large_hidden_directory_is_searched_in_part_only() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, small) = (dir.path().join("cache"), dir.path().join("small"));
        for path in [&cache, &small] {
            fs::create_dir(path).unwrap();
        }
        fs::write(cache.join("first"), "x").unwrap();
        fs::hard_link(cache.join("first"), dir.path().join("alias")).unwrap();
        // All entries are hard links of one file, so the result does not depend on the search order.
        for number in 0..=MAX_NAMES_IN_LARGE {
            fs::hard_link(cache.join("first"), cache.join(number.to_string())).unwrap();
        }
        fs::write(small.join("key"), "x").unwrap();
        fs::hard_link(small.join("key"), dir.path().join("other")).unwrap();
        let paths = [cache.clone(), small];
        let (hidden, _) = existing(&paths, &[cache]).unwrap();
        let places = [dir.path().join("alias"), dir.path().join("other")];
        assert_eq!(other_names(&hidden, &places).unwrap(), places);
    }
}
