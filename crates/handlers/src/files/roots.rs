//! Cleans paths and finds the granted root that contains them.
//!
//! Paths are cleaned as text first (`.`, `..`, doubled slashes), like in the reference runtime. A path therefore
//! means the same whether or not its directories exist. The kernel then resolves symlinks beneath the root.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use super::{
    error::{FileFault, FileReason, quoted},
    grants::FileGrants,
    kernel::{self, UNFINISHED},
};

/// A granted directory or file, opened once, by its name in the grant and its real path.
#[derive(Debug)]
pub(super) struct GrantedRoot {
    pub granted: String,
    pub real: String,
    /// The directory; for a file, the directory around it, of which nothing else is granted.
    pub dir: File,
    /// The name of the root in `dir`.
    itself: String,
}

#[derive(Debug)]
pub(super) struct GrantedRoots {
    pub workspace: GrantedRoot,
    others: Vec<GrantedRoot>,
}

/// A path before symlinks are resolved.
#[derive(Debug)]
pub(super) struct CleanPath<'r> {
    /// Absolute and clean, below the real path of `root`.
    pub path: String,
    pub root: &'r GrantedRoot,
}

impl GrantedRoots {
    pub fn open(grants: &FileGrants) -> Result<Self, FileFault> {
        let whole = WholeWorkspace::of(&grants.pattern_workspace);
        let workspace = GrantedRoot::open(&grants.workspace, &whole)?.ok_or_else(|| {
            FileFault::new(FileReason::GrantUnusable, "the workspace does not exist; create the folder")
        })?;
        if workspace.is_file() {
            let message = "the workspace is a file; name a folder";
            return Err(FileFault::new(FileReason::GrantUnusable, message));
        }
        let mut others: Vec<GrantedRoot> = Vec::new();
        for path in &grants.read_roots {
            let Some(root) = GrantedRoot::open(path, &whole)? else { continue };
            if root.real != workspace.real && others.iter().all(|other| other.real != root.real) {
                others.push(root);
            }
        }
        Ok(Self { workspace, others })
    }

    pub fn iter(&self) -> impl Iterator<Item = &GrantedRoot> {
        std::iter::once(&self.workspace).chain(&self.others)
    }

    /// Roots that are not inside another one.
    pub fn outermost(&self) -> impl Iterator<Item = &GrantedRoot> {
        self.iter().filter(|root| {
            self.iter().all(|other| other.real == root.real || below(&root.real, &other.real).is_none())
        })
    }

    /// The clean path of something to read. The outermost root is used, so a symlink may cross nested roots.
    pub fn readable(&self, asked: &str) -> Result<CleanPath<'_>, FileFault> {
        let path = self.clean(asked)?;
        let root = self.outermost().find(|root| below(&path, &root.real).is_some());
        root.map(|root| CleanPath { path, root }).ok_or_else(|| escapes(asked))
    }

    pub fn writable(&self, asked: &str) -> Result<CleanPath<'_>, FileFault> {
        let path = self.clean(asked)?;
        // Listings skip the names of unfinished writes, so a tool must not create such names.
        if path.split('/').any(|part| part.starts_with(UNFINISHED)) {
            let message =
                format!("{} begins with `{UNFINISHED}`, which is kept for unfinished writes", quoted(asked));
            return Err(FileFault::new(FileReason::InvalidPath, message));
        }
        match below(&path, &self.workspace.real) {
            Some(_) => Ok(CleanPath { path, root: &self.workspace }),
            None => Err(outside_workspace(asked)),
        }
    }

    /// The form that tools see: relative inside the workspace, absolute elsewhere.
    pub fn shown(&self, path: &str) -> String {
        match below(path, &self.workspace.real) {
            Some("") => ".".into(),
            Some(rest) => rest.into(),
            None => self.absolute(path),
        }
    }

    /// The path with the root's name in the grant.
    pub fn absolute(&self, path: &str) -> String {
        let root = self.iter().find(|root| below(path, &root.real).is_some());
        root.map_or_else(|| path.into(), |root| root.rename(path))
    }

    /// The form in which paths are compared: absolute, cleaned as text, with the real paths of the roots.
    pub fn clean(&self, asked: &str) -> Result<String, FileFault> {
        check_text(asked)?;
        if !asked.starts_with('/') {
            return Ok(normal(&format!("{}/{asked}", self.workspace.real)));
        }
        let path = normal(asked);
        let renamed = self.iter().find_map(|root| Some(join(&root.real, below(&path, &root.granted)?)));
        Ok(renamed.unwrap_or(path))
    }
}

/// The gateway's whole workspace, by its configured path and its real path.
struct WholeWorkspace<'g> {
    granted: &'g Path,
    real: Option<PathBuf>,
}

impl<'g> WholeWorkspace<'g> {
    fn of(granted: &'g Path) -> Self {
        Self { granted, real: fs::canonicalize(granted).ok() }
    }

    /// Rejects a grant that names a part of the workspace but leads elsewhere. A tool can plant a symlink in the
    /// workspace, and the risk rating and the copies for test runs rely on the written path.
    fn check(&self, path: &Path, real: &str) -> Result<(), FileFault> {
        let is_part =
            path.starts_with(self.granted) || self.real.as_ref().is_some_and(|whole| path.starts_with(whole));
        let is_inside = self.real.as_ref().is_some_and(|whole| Path::new(real).starts_with(whole));
        if !is_part || is_inside {
            return Ok(());
        }
        let inside = path.strip_prefix(self.granted).unwrap_or(path).to_string_lossy();
        let message = format!(
            "the granted folder {} leads out of the workspace; name the folder itself",
            quoted(&inside)
        );
        Err(FileFault::new(FileReason::GrantUnusable, message))
    }
}

impl GrantedRoot {
    /// Follows symlinks, but not out of the workspace.
    fn open(path: &Path, whole: &WholeWorkspace<'_>) -> Result<Option<Self>, FileFault> {
        let unusable =
            |why: &str| FileFault::new(FileReason::GrantUnusable, format!("a granted folder {why}"));
        let granted = path.to_str().ok_or_else(|| unusable("has a name that is not UTF-8; rename it"))?;
        if !granted.starts_with('/') {
            return Err(unusable("is not an absolute path; write it out"));
        }
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(_) => return Err(unusable("cannot be resolved; check its owner and mode")),
        };
        let (dir, itself) = match (real.is_file(), real.parent(), real.file_name()) {
            (true, Some(around), Some(name)) => (kernel::open_root(around)?, kernel::lossy(name)),
            _ => (kernel::open_root(&real)?, ITSELF.to_owned()),
        };
        let Some(around) = kernel::real_path(&dir, granted)? else { return Ok(None) };
        let real = if itself == ITSELF { around } else { join(&around, &itself) };
        whole.check(path, &real)?;
        // `..` may lead elsewhere once symlinks are resolved, so such a name is not compared.
        let is_plain = !granted.split('/').any(|part| part == "..");
        let granted = if is_plain { normal(granted) } else { real.clone() };
        Ok(Some(Self { granted, real, dir, itself }))
    }

    fn is_file(&self) -> bool {
        self.itself != ITSELF
    }

    /// The same path with the name in the grant.
    pub fn rename(&self, path: &str) -> String {
        below(path, &self.real).map_or_else(|| path.into(), |rest| join(&self.granted, rest))
    }
}

impl CleanPath<'_> {
    /// The path to open, relative to the root's directory.
    pub fn inside(&self) -> &str {
        match below(&self.path, &self.root.real) {
            Some("") | None => &self.root.itself,
            Some(rest) => rest,
        }
    }

    pub fn is_root(&self) -> bool {
        self.path == self.root.real
    }
}

/// The rest of `path` below `folder`: empty for the directory itself.
pub(super) fn below<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(folder.trim_end_matches('/'))?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

pub(super) fn join(folder: &str, rest: &str) -> String {
    match rest {
        "" => folder.into(),
        rest => format!("{}/{rest}", folder.trim_end_matches('/')),
    }
}

pub(super) fn escapes(asked: &str) -> FileFault {
    let message = format!(
        "{} leads out of the folders that this tool may read; absolute symbolic links count as leading out",
        quoted(asked)
    );
    FileFault::new(FileReason::PathEscapesBase, message)
}

pub(super) fn outside_workspace(asked: &str) -> FileFault {
    let message = format!("{} is outside of the workspace; write inside it", quoted(asked));
    FileFault::new(FileReason::WriteOutsideWorkspace, message)
}

fn check_text(asked: &str) -> Result<(), FileFault> {
    if asked.is_empty() {
        return Err(FileFault::new(FileReason::PathRequired, "the path is empty; use `.` for the workspace"));
    }
    let invalid = |why: &str| FileFault::new(FileReason::InvalidPath, format!("{} {why}", quoted(asked)));
    if asked.contains('\0') {
        return Err(invalid("contains a NUL character; remove it"));
    }
    if asked.len() > LONGEST_PATH || asked.split('/').any(|name| name.len() > LONGEST_NAME) {
        return Err(invalid("is too long: 4000 bytes for a path, 255 for a name in it"));
    }
    Ok(())
}

fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The directory itself, as a path for the kernel.
const ITSELF: &str = ".";

/// Below the kernel's 4096, which leaves room for the workspace's own path; the kernel rejects longer ones.
const LONGEST_PATH: usize = 4000;
const LONGEST_NAME: usize = 255;
