//! Masks hidden paths inside shown directories.
//!
//! Each hidden path is covered with an empty file or directory without permissions, under every path that a bind
//! gives it. Other mounts of the same files are covered, too. Hard links of hidden files are searched by inode in
//! all binds and covered there.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io,
    os::fd::{AsFd, OwnedFd},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Dir, FileType, Mode, OFlags, ResolveFlags, Stat},
    mount::OpenTreeFlags,
};

use super::{Old, READ_ONLY, mount_on, place, place::Tree, same};
use crate::{
    command::encode::Order,
    sys::mounts::{Reach, restrict_mount},
};

/// A part of the host's tree that the command sees.
#[derive(Debug)]
pub(crate) struct Shown {
    /// Its real path on the host.
    pub(crate) source: PathBuf,
    /// Its path in the jail.
    pub(crate) at: PathBuf,
    pub(crate) origin: Origin,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Origin {
    /// In every jail. Too large to search, and only root creates files there.
    System,
    /// Requested.
    Bind,
}

/// Device and inode: identifies a file independently of its path.
pub(crate) type Id = (u64, u64);

pub(crate) fn cover_all(old: &Old, tree: &Tree, shown: &[Shown], order: &Order) -> io::Result<()> {
    if order.hidden.is_empty() {
        return Ok(());
    }
    // Other names are searched for in binds only.
    let has_binds = shown.iter().any(|one| one.origin == Origin::Bind);
    let mut budget = Budget::new();
    let mut aliased = BTreeSet::new();
    let mut named = Vec::new();
    for path in &order.hidden {
        let Some(found) = exists(old.open(path))? else { continue };
        let about = rustix::fs::fstat(&found)?;
        let real = old.real_path(found.as_fd())?;
        if has_binds {
            aliased.extend(if order.hidden_large.contains(path) {
                first_other_names(&found, &about)?
            } else {
                other_names(&found, &about, &mut budget)?
            });
        }
        let twins = if old.shows_twins { old.mounts.seen_outside(&real) } else { Vec::new() };
        named.push((real, about));
        for name in twins {
            if let Some(found) = exists(old.open(&name))? {
                named.push((name, rustix::fs::fstat(&found)?));
            }
        }
    }
    let is_seen = |(real, _): &(PathBuf, Stat)| shown.iter().any(|one| seen_at(real, one).is_some());
    if aliased.is_empty() && !named.iter().any(is_seen) {
        return Ok(());
    }
    let cover = Cover::make(tree)?;
    for (real, about) in &named {
        cover_name(tree, &cover, shown, real, about)?;
    }
    if !aliased.is_empty() {
        for one in shown.iter().filter(|one| one.origin == Origin::Bind) {
            let top = look_up(tree, &one.at)?;
            cover_aliases(&top, &cover, &aliased, &mut budget)?;
        }
    }
    Cover::forget_names(tree)
}

/// Masks a path wherever it is shown.
fn cover_name(tree: &Tree, cover: &Cover, shown: &[Shown], real: &Path, about: &Stat) -> io::Result<()> {
    for one in shown {
        if let Some(place) = seen_at(real, one) {
            cover_one(tree, cover, &place, about, shown, one)?;
        }
    }
    Ok(())
}

/// The path at which a hidden file is visible through a shown directory.
pub(crate) fn seen_at(hidden: &Path, shown: &Shown) -> Option<PathBuf> {
    if shown.source.starts_with(hidden) {
        return Some(shown.at.clone());
    }
    let below = hidden.strip_prefix(&shown.source).ok()?;
    Some(shown.at.join(below))
}

/// Ids of hidden files that have hard links.
pub(crate) fn other_names(found: &OwnedFd, about: &Stat, budget: &mut Budget) -> io::Result<BTreeSet<Id>> {
    let mut aliased = BTreeSet::new();
    gather_other_names(found, about, budget, &mut aliased)?;
    Ok(aliased)
}

/// The same, for the first files of a directory that may be large.
pub(crate) fn first_other_names(found: &OwnedFd, about: &Stat) -> io::Result<BTreeSet<Id>> {
    let mut aliased = BTreeSet::new();
    let mut budget = Budget(MOST_NAMES_IN_LARGE);
    let gathered = gather_other_names(found, about, &mut budget, &mut aliased);
    if !budget.is_spent() {
        gathered?;
    }
    Ok(aliased)
}

fn gather_other_names(
    found: &OwnedFd,
    about: &Stat,
    budget: &mut Budget,
    aliased: &mut BTreeSet<Id>,
) -> io::Result<()> {
    if !FileType::from_raw_mode(about.st_mode).is_dir() {
        aliased.extend((about.st_nlink > 1).then_some(id(about)));
        return Ok(());
    }
    // A directory that we cannot open is masked as a whole, and no user could create hard links to its files.
    let mut folders: Vec<OwnedFd> = exists(reopen_folder(found))?.into_iter().collect();
    while let Some(folder) = folders.pop() {
        each(&folder, budget, |name, about| {
            if FileType::from_raw_mode(about.st_mode).is_dir() {
                folders.extend(exists(open_folder(&folder, name))?);
            } else if about.st_nlink > 1 {
                aliased.insert(id(about));
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Number of directory entries that may be read while a jail is created.
#[derive(Debug)]
pub(crate) struct Budget(u32);

impl Budget {
    pub(crate) fn new() -> Self {
        Self(MOST_NAMES)
    }

    fn is_spent(&self) -> bool {
        self.0 == 0
    }

    fn spend(&mut self) -> io::Result<()> {
        self.0 = self.0.checked_sub(1).ok_or_else(|| {
            io::Error::other(format!(
                "more than {MOST_NAMES} files would have to be compared with a hidden file that has hard links; \
                 bind less, or remove its hard links"
            ))
        })?;
        Ok(())
    }
}

/// Calls `look` for every entry of a directory. Symlinks are not followed.
pub(crate) fn each(
    folder: &OwnedFd,
    budget: &mut Budget,
    mut look: impl FnMut(&OsStr, &Stat) -> io::Result<()>,
) -> io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        budget.spend()?;
        let about = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        if let Some(about) = exists(about.map_err(Into::into))? {
            look(name, &about)?;
        }
    }
    Ok(())
}

/// The masks for files and directories.
struct Cover {
    file: OwnedFd,
    folder: OwnedFd,
}

impl Cover {
    fn make(tree: &Tree) -> io::Result<Self> {
        let file = place::file(tree, Path::new(FILE))?;
        let folder = place::folder(tree, Path::new(FOLDER))?;
        for path in [FILE, FOLDER] {
            rustix::fs::chmodat(
                &tree.root,
                below_root(Path::new(path)),
                Mode::empty(),
                rustix::fs::AtFlags::empty(),
            )?;
        }
        Ok(Self { file, folder })
    }

    fn lay_over(&self, place: &OwnedFd) -> io::Result<()> {
        let is_folder = FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode).is_dir();
        let what = if is_folder { &self.folder } else { &self.file };
        let clone =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
        let mount = rustix::mount::open_tree(what, "", clone)?;
        restrict_mount(mount.as_fd(), READ_ONLY, Reach::This)?;
        mount_on(&mount, place)
    }

    fn lies_over(&self, place: &OwnedFd) -> io::Result<bool> {
        let found = id(&rustix::fs::fstat(place)?);
        Ok([&self.file, &self.folder]
            .into_iter()
            .any(|cover| rustix::fs::fstat(cover).is_ok_and(|about| id(&about) == found)))
    }

    /// Removes the paths of the masks; they continue to exist as mounts.
    fn forget_names(tree: &Tree) -> io::Result<()> {
        rustix::fs::unlinkat(&tree.root, below_root(Path::new(FILE)), rustix::fs::AtFlags::empty())?;
        rustix::fs::unlinkat(&tree.root, below_root(Path::new(FOLDER)), rustix::fs::AtFlags::REMOVEDIR)?;
        Ok(())
    }
}

fn cover_one(
    tree: &Tree,
    cover: &Cover,
    place: &Path,
    about: &Stat,
    shown: &[Shown],
    one: &Shown,
) -> io::Result<()> {
    // Another bind covers this path, so it is not visible through this one.
    if shown
        .iter()
        .any(|other| other.at.starts_with(&one.at) && other.at != one.at && place.starts_with(&other.at))
    {
        return Ok(());
    }
    let Some(found) = exists(look_up(tree, place))? else { return Ok(()) };
    // A symlink and its target may both be hidden.
    if cover.lies_over(&found)? {
        return Ok(());
    }
    let is_whole_bind = place == one.at;
    pin_above(tree, place, &one.at)?;
    // Opened again, because a directory above may be another mount now.
    let found = if is_whole_bind { found } else { look_up(tree, place)? };
    if is_whole_bind || same(about, &rustix::fs::fstat(&found)?) {
        return cover.lay_over(&found);
    }
    Err(io::Error::other(format!("`{}` was replaced while the jail was created; try again", place.display())))
}

/// Bind-mounts every directory between `top` and `place` onto itself, because a mount point cannot be renamed.
/// Otherwise a command could move the directory: its hidden content would be visible in the next jail, and another
/// directory could take its place.
pub(crate) fn pin_above(tree: &Tree, place: &Path, top: &Path) -> io::Result<()> {
    let between: Vec<&Path> = place.ancestors().skip(1).take_while(|above| *above != top).collect();
    for above in between.into_iter().rev().filter(|above| above.starts_with(top)) {
        let folder = look_up(tree, above)?;
        let is_mount =
            rustix::fs::statx(&folder, "", rustix::fs::AtFlags::EMPTY_PATH, rustix::fs::StatxFlags::TYPE)?
                .stx_attributes
                .contains(rustix::fs::StatxAttributes::MOUNT_ROOT);
        let is_read_only =
            rustix::fs::fstatvfs(&folder)?.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY);
        if !is_mount && !is_read_only {
            let clone = OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC
                | OpenTreeFlags::AT_EMPTY_PATH
                | OpenTreeFlags::AT_RECURSIVE;
            mount_on(&rustix::mount::open_tree(&folder, "", clone)?, &folder)?;
        }
    }
    Ok(())
}

/// Searches the tree that the command will see, with the masks so far.
fn cover_aliases(
    top: &OwnedFd,
    cover: &Cover,
    aliased: &BTreeSet<Id>,
    budget: &mut Budget,
) -> io::Result<()> {
    let about = rustix::fs::fstat(top)?;
    if !FileType::from_raw_mode(about.st_mode).is_dir() {
        return if aliased.contains(&id(&about)) { cover.lay_over(top) } else { Ok(()) };
    }
    // Masked as a whole.
    let Ok(top) = reopen_folder(top) else { return Ok(()) };
    let mut folders = vec![top];
    while let Some(folder) = folders.pop() {
        each(&folder, budget, |name, about| {
            if FileType::from_raw_mode(about.st_mode).is_dir() {
                // The command has our user, so it cannot enter what we cannot enter.
                folders.extend(open_folder(&folder, name).ok());
            } else if aliased.contains(&id(about)) {
                let place = rustix::fs::openat(&folder, name, PLACE, Mode::empty())?;
                cover.lay_over(&place)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn look_up(tree: &Tree, path: &Path) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::IN_ROOT;
    Ok(rustix::fs::openat2(&tree.root, below_root(path), PLACE, Mode::empty(), resolve)?)
}

fn below_root(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

fn reopen_folder(folder: &OwnedFd) -> io::Result<OwnedFd> {
    open_folder(folder, OsStr::new("."))
}

fn open_folder(folder: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?)
}

pub(crate) fn id(about: &Stat) -> Id {
    (about.st_dev, about.st_ino)
}

/// Missing paths need no mask. Nor do paths that we cannot reach, because the command has our user.
pub(crate) fn exists<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::EACCES)) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const MOST_NAMES: u32 = 200_000;
/// For each hidden directory that may be large.
const MOST_NAMES_IN_LARGE: u32 = 20_000;
const FILE: &str = "/.hidden-file";
const FOLDER: &str = "/.hidden-folder";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_hidden_directory_is_searched_in_part_without_error() {
        let folder = tempfile::tempdir().unwrap();
        let first = folder.path().join("first");
        std::fs::write(&first, "x").unwrap();
        // All entries are hard links of one file, so the result does not depend on the search order.
        for number in 0..=MOST_NAMES_IN_LARGE {
            std::fs::hard_link(&first, folder.path().join(number.to_string())).unwrap();
        }
        let found = rustix::fs::open(folder.path(), PLACE, Mode::empty()).unwrap();
        let about = rustix::fs::fstat(&found).unwrap();
        let aliased = BTreeSet::from([id(&rustix::fs::stat(&first).unwrap())]);
        assert_eq!(first_other_names(&found, &about).unwrap(), aliased);
        assert_eq!(other_names(&found, &about, &mut Budget::new()).unwrap(), aliased);
        assert!(other_names(&found, &about, &mut Budget(MOST_NAMES_IN_LARGE)).is_err());
    }
}
