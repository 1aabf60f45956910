//! Walks files and directories in a fixed order, without following symlink loops.

use std::{
    error::Error,
    ffi::OsStr,
    fmt, fs, io,
    path::{Path, PathBuf},
};

use walkdir::{DirEntry, WalkDir};

/// The files that `paths` name. A file yields itself, even if not accepted; a directory yields the accepted files below it,
/// sorted by name. Skips hidden directories, `target`, `node_modules` and leftovers of killed writes. Does not follow
/// symlinks to directories. An unreadable path yields an error and does not stop the walk.
pub fn walk<'a>(
    paths: impl IntoIterator<Item = PathBuf> + 'a,
    accept: &'a dyn Fn(&Path) -> bool,
) -> impl Iterator<Item = Result<PathBuf, WalkError>> + 'a {
    paths.into_iter().flat_map(move |path| {
        // `walkdir` follows a symlink given as root. This is intended: the user named it.
        let below = WalkDir::new(path).sort_by_file_name().into_iter().filter_entry(is_walked);
        below.filter_map(move |entry| judge(entry, accept))
    })
}

/// Why a path could not be read.
#[derive(Debug)]
pub struct WalkError {
    pub path: PathBuf,
    pub error: io::Error,
}

impl fmt::Display for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot access `{}`: {}", self.path.display(), self.error)
    }
}

impl Error for WalkError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

/// The symlinks below a directory that `walk` encounters, in order.
pub(crate) fn links(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = WalkDir::new(dir).sort_by_file_name().into_iter().filter_entry(is_walked);
    let links = entries.filter_map(Result::ok).filter(|entry| entry.depth() > 0 && entry.path_is_symlink());
    links.map(DirEntry::into_path)
}

/// The result of `walk` for one path.
#[derive(Debug)]
pub enum Walked {
    /// A file that `walk` yields.
    File(Result<PathBuf, WalkError>),
    /// `walk` skips it, or it does not exist.
    Nothing,
    /// A directory: several files may have changed.
    Directory,
}

/// Classifies one path below the directory `root` as `walk` does.
pub fn walk_one(root: &Path, path: &Path, accept: &dyn Fn(&Path) -> bool) -> Walked {
    let below = path.strip_prefix(root).unwrap_or(path);
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Walked::Nothing,
        Err(error) => return Walked::File(Err(WalkError { path: path.to_owned(), error })),
    };
    if found.is_dir() {
        return Walked::Directory;
    }
    if is_skipped(below) {
        return Walked::Nothing;
    }
    let judged = if found.is_symlink() {
        judge_link(path, false, accept)
    } else {
        accept(path).then(|| Ok(path.to_owned()))
    };
    judged.map_or(Walked::Nothing, Walked::File)
}

/// True if `walk` skips this path, given relative to the walked directory. The last name counts as a file: a deleted path
/// no longer shows what it was.
pub(crate) fn is_skipped(below: &Path) -> bool {
    let mut names = below.iter().map(OsStr::to_string_lossy).rev();
    let is_unfinished = names.next().is_some_and(|last| is_unfinished(&last));
    is_unfinished || names.any(|dir| is_skipped_dir(&dir))
}

pub(crate) fn is_walked(entry: &DirEntry) -> bool {
    if entry.depth() == 0 {
        return true;
    }
    let name = entry.file_name().to_string_lossy();
    if entry.file_type().is_dir() { !is_skipped_dir(&name) } else { !is_unfinished(&name) }
}

fn is_skipped_dir(name: &str) -> bool {
    name.starts_with('.') || SKIPPED_DIRS.contains(&name)
}

/// The temporary file of a write that is in progress or was killed.
fn is_unfinished(name: &str) -> bool {
    name.starts_with(crate::write::UNFINISHED)
}

fn judge(
    entry: walkdir::Result<DirEntry>,
    accept: &dyn Fn(&Path) -> bool,
) -> Option<Result<PathBuf, WalkError>> {
    let entry = match entry {
        Ok(entry) => entry,
        Err(error) => return Some(Err(explained(error))),
    };
    let is_named = entry.depth() == 0;
    if entry.file_type().is_dir() {
        return None;
    }
    if entry.file_type().is_symlink() {
        return judge_link(entry.path(), is_named, accept);
    }
    (is_named || accept(entry.path())).then(|| Ok(entry.into_path()))
}

/// A symlink to a file counts as the file. A symlink to a directory is ignored. A broken symlink is reported if its name is
/// accepted.
fn judge_link(
    path: &Path,
    is_named: bool,
    accept: &dyn Fn(&Path) -> bool,
) -> Option<Result<PathBuf, WalkError>> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => None,
        _ if !is_named && !accept(path) => None,
        Ok(_) => Some(Ok(path.to_owned())),
        Err(error) => Some(Err(WalkError { path: path.to_owned(), error })),
    }
}

fn explained(error: walkdir::Error) -> WalkError {
    let path = error.path().unwrap_or(Path::new("")).to_owned();
    let error = error.into_io_error().unwrap_or_else(|| rustix::io::Errno::LOOP.into());
    WalkError { path, error }
}

const SKIPPED_DIRS: [&str; 2] = ["target", "node_modules"];
