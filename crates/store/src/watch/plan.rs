//! Computes which directories must be watched for a set of paths.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::walk;

/// All paths are canonical, so no directory is watched twice.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct WatchPlan {
    /// The requested paths, existing or not.
    targets: Vec<PathBuf>,
    /// Sorted, so a parent is registered before its children. It then reports a child that is replaced meanwhile.
    folders: BTreeMap<PathBuf, WatchedDir>,
    /// Symlinks below the watched directories.
    links: BTreeMap<PathBuf, Vec<PathBuf>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct WatchedDir {
    depth: Depth,
    /// Device and inode: a recreated directory needs a new watch.
    identity: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Depth {
    /// Entries created, removed, renamed or written directly in the directory.
    Names,
    Everything,
}

impl WatchPlan {
    pub(super) fn of(paths: &[PathBuf]) -> Self {
        Self::with_links(paths, &|folder| walk::links(folder).collect())
    }

    /// The plan for the same paths and the current disk, assuming that no symlink was added. Does not walk the directories.
    pub(super) fn again(&self, paths: &[PathBuf]) -> Self {
        Self::with_links(paths, &|folder| self.links.get(folder).cloned().unwrap_or_default())
    }

    fn with_links(paths: &[PathBuf], links: &dyn Fn(&Path) -> Vec<PathBuf>) -> Self {
        let mut plan = Self { targets: Vec::new(), folders: BTreeMap::new(), links: BTreeMap::new() };
        for path in paths {
            plan.add(path, links);
        }
        plan.leave_to_outer_folders();
        plan
    }

    pub(super) fn watched(&self) -> impl Iterator<Item = (&Path, Depth)> {
        self.folders.iter().map(|(path, folder)| (path.as_path(), folder.depth))
    }

    pub(super) fn registers(&self, folder: &Path) -> bool {
        self.folders.contains_key(folder)
    }

    /// True for a change inside a target or of one of its ancestors; false for its siblings.
    pub(super) fn concerns(&self, path: &Path) -> bool {
        self.targets.iter().any(|target| match path.strip_prefix(target) {
            Ok(below) => !walk::is_skipped(below),
            Err(_) => target.starts_with(path),
        })
    }

    fn add(&mut self, path: &Path, links: &dyn Fn(&Path) -> Vec<PathBuf>) {
        let (real, missing) = nearest(path);
        if missing.as_os_str().is_empty() {
            if real.is_dir() {
                self.watch(real.clone(), Depth::Everything);
                self.add_linked_files(&real, links(&real));
            }
            if let Some(parent) = real.parent() {
                self.watch(parent.to_owned(), Depth::Names);
            }
            self.add_link(path, &real);
            self.targets.push(real);
        } else {
            self.targets.push(real.join(missing));
            self.watch(real, Depth::Names);
        }
    }

    /// If the last component is a symlink, its target may change.
    fn add_link(&mut self, path: &Path, real: &Path) {
        let (Some(Ok(parent)), Some(name)) = (path.parent().map(fs::canonicalize), path.file_name()) else {
            return;
        };
        let link = parent.join(name);
        if link != real {
            self.watch(parent, Depth::Names);
            self.targets.push(link);
        }
    }

    /// A file linked into a directory counts as part of it, but changes where it is stored.
    fn add_linked_files(&mut self, folder: &Path, links: Vec<PathBuf>) {
        let files = links.iter().filter_map(|link| fs::canonicalize(link).ok()).filter(|real| real.is_file());
        for file in files {
            if let Some(parent) = file.parent() {
                self.watch(parent.to_owned(), Depth::Names);
            }
            self.targets.push(file);
        }
        self.links.insert(folder.to_owned(), links);
    }

    /// Drops directories inside a recursively watched one: a separate watch would hide new files in them.
    fn leave_to_outer_folders(&mut self) {
        let whole = self.folders.iter().filter(|(_, folder)| folder.depth == Depth::Everything);
        let whole: Vec<PathBuf> = whole.map(|(path, _)| path.clone()).collect();
        self.folders.retain(|path, folder| {
            folder.depth == Depth::Everything || !whole.iter().any(|outer| path.starts_with(outer))
        });
    }

    fn watch(&mut self, path: PathBuf, depth: Depth) {
        let identity = fs::metadata(&path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        let folder = self.folders.entry(path).or_insert(WatchedDir { depth, identity });
        folder.depth = folder.depth.max(depth);
    }
}

/// The canonical path of the nearest existing ancestor, and the missing rest.
fn nearest(path: &Path) -> (PathBuf, PathBuf) {
    for ancestor in path.ancestors() {
        // A regular file cannot contain the rest of the path.
        if let Ok(real) = fs::canonicalize(ancestor)
            && (ancestor == path || real.is_dir())
        {
            return (real, path.strip_prefix(ancestor).unwrap_or(Path::new("")).to_owned());
        }
    }
    (PathBuf::from("/"), path.to_owned())
}
