//! Which folders have to be watched for these paths, as the disk is now?

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::walk;

/// All paths in it are real ones, without links, so that no folder is watched under two names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Plan {
    /// What was asked for, whether it exists or not.
    targets: Vec<PathBuf>,
    /// Ordered, so that a folder comes after the one it is in: whoever replaces it meanwhile is seen by the latter.
    folders: BTreeMap<PathBuf, Folder>,
    /// Symlinks below the watched folders.
    links: BTreeMap<PathBuf, Vec<PathBuf>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Folder {
    depth: Depth,
    /// Device and inode: a folder that was made anew has to be watched anew.
    identity: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Depth {
    /// What is made, removed, renamed and written directly in the folder.
    Names,
    Everything,
}

impl Plan {
    pub(super) fn of(paths: &[PathBuf]) -> Self {
        Self::with_links(paths, &|folder| walk::links(folder).collect())
    }

    /// The plan for the same paths as the disk is now, if no symlink was added. Does not walk the folders.
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

    /// Does a change of this path matter? It does in a target, and on the way to one; not beside it.
    pub(super) fn concerns(&self, path: &Path) -> bool {
        self.targets.iter().any(|target| match path.strip_prefix(target) {
            Ok(below) => !walk::is_passed_over(below),
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

    /// Where the last name of the path is a link, it may be made to lead elsewhere.
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

    /// A file that is linked into a folder counts as one of it, and is written where it lies.
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

    /// A folder in one that is watched with everything in it would, watched for itself, lose what is made in it later.
    fn leave_to_outer_folders(&mut self) {
        let whole = self.folders.iter().filter(|(_, folder)| folder.depth == Depth::Everything);
        let whole: Vec<PathBuf> = whole.map(|(path, _)| path.clone()).collect();
        self.folders.retain(|path, folder| {
            folder.depth == Depth::Everything || !whole.iter().any(|outer| path.starts_with(outer))
        });
    }

    fn watch(&mut self, path: PathBuf, depth: Depth) {
        let identity = fs::metadata(&path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        let folder = self.folders.entry(path).or_insert(Folder { depth, identity });
        folder.depth = folder.depth.max(depth);
    }
}

/// The real path of the nearest thing that exists on the way, and what is missing below it.
fn nearest(path: &Path) -> (PathBuf, PathBuf) {
    for ancestor in path.ancestors() {
        // A file in the middle of a path is no folder in which the rest could appear.
        if let Ok(real) = fs::canonicalize(ancestor)
            && (ancestor == path || real.is_dir())
        {
            return (real, path.strip_prefix(ancestor).unwrap_or(Path::new("")).to_owned());
        }
    }
    (PathBuf::from("/"), path.to_owned())
}
