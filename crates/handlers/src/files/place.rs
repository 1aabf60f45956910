//! Which file does a tool mean by a path, and below which root does it lie?
//!
//! Paths are cleaned as text first (`.`, `..`, doubled slashes), as the reference runtime does, so that a path means
//! the same whether or not its folders exist. What links then make of it is the kernel's to say, beneath the root.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use super::{
    error::{Fault, Reason, quoted},
    grants::FileGrants,
    kernel::{self, UNFINISHED},
};

/// A granted folder or file, opened once, under the name in the grant and under its own.
#[derive(Debug)]
pub(super) struct Root {
    pub granted: String,
    pub real: String,
    /// The folder; of a file, the one around it, of which nothing else is granted.
    pub dir: File,
    /// What the root itself is called in `dir`.
    itself: String,
}

#[derive(Debug)]
pub(super) struct Roots {
    pub workspace: Root,
    others: Vec<Root>,
}

/// Where a path leads before any link is followed.
#[derive(Debug)]
pub(super) struct Place<'r> {
    /// Absolute and clean, below the real path of `root`.
    pub path: String,
    pub root: &'r Root,
}

impl Roots {
    pub fn open(grants: &FileGrants) -> Result<Self, Fault> {
        let whole = Whole::of(&grants.pattern_workspace);
        let workspace = Root::open(&grants.workspace, &whole)?.ok_or_else(|| {
            Fault::new(Reason::GrantUnusable, "the workspace does not exist; create the folder")
        })?;
        if workspace.is_file() {
            let message = "the workspace is a file; name a folder";
            return Err(Fault::new(Reason::GrantUnusable, message));
        }
        let mut others: Vec<Root> = Vec::new();
        for path in &grants.read_roots {
            let Some(root) = Root::open(path, &whole)? else { continue };
            if root.real != workspace.real && others.iter().all(|other| other.real != root.real) {
                others.push(root);
            }
        }
        Ok(Self { workspace, others })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Root> {
        std::iter::once(&self.workspace).chain(&self.others)
    }

    /// Those that lie in no other one.
    pub fn outermost(&self) -> impl Iterator<Item = &Root> {
        self.iter().filter(|root| {
            self.iter().all(|other| other.real == root.real || below(&root.real, &other.real).is_none())
        })
    }

    /// The place of a path that may be read. The outermost root counts, so that a link may cross nested roots.
    pub fn readable(&self, asked: &str) -> Result<Place<'_>, Fault> {
        let path = self.clean(asked)?;
        let root = self.outermost().find(|root| below(&path, &root.real).is_some());
        root.map(|root| Place { path, root }).ok_or_else(|| escapes(asked))
    }

    pub fn writable(&self, asked: &str) -> Result<Place<'_>, Fault> {
        let path = self.clean(asked)?;
        // Names of unfinished writes are passed over by every listing; a file of a tool must not hide among them.
        if path.split('/').any(|part| part.starts_with(UNFINISHED)) {
            let message =
                format!("{} begins with `{UNFINISHED}`, which is kept for unfinished writes", quoted(asked));
            return Err(Fault::new(Reason::InvalidPath, message));
        }
        match below(&path, &self.workspace.real) {
            Some(_) => Ok(Place { path, root: &self.workspace }),
            None => Err(outside_workspace(asked)),
        }
    }

    /// As a tool is shown it: relative inside the workspace, absolute elsewhere.
    pub fn shown(&self, path: &str) -> String {
        match below(path, &self.workspace.real) {
            Some("") => ".".into(),
            Some(rest) => rest.into(),
            None => self.absolute(path),
        }
    }

    /// By the name that the grant uses.
    pub fn absolute(&self, path: &str) -> String {
        let root = self.iter().find(|root| below(path, &root.real).is_some());
        root.map_or_else(|| path.into(), |root| root.rename(path))
    }

    /// The one name by which paths are compared: absolute, as text, by the real names of the roots.
    pub fn clean(&self, asked: &str) -> Result<String, Fault> {
        check_text(asked)?;
        if !asked.starts_with('/') {
            return Ok(normal(&format!("{}/{asked}", self.workspace.real)));
        }
        let path = normal(asked);
        let renamed = self.iter().find_map(|root| Some(join(&root.real, below(&path, &root.granted)?)));
        Ok(renamed.unwrap_or(path))
    }
}

/// The gateway's whole workspace, by the configured name and by the real one.
struct Whole<'g> {
    granted: &'g Path,
    real: Option<PathBuf>,
}

impl<'g> Whole<'g> {
    fn of(granted: &'g Path) -> Self {
        Self { granted, real: fs::canonicalize(granted).ok() }
    }

    /// Refuses a grant that names a part of the workspace and lies elsewhere. A tool can plant a symlink in the workspace, and
    /// the risk rating and the copies for test runs rely on the written path.
    fn check(&self, path: &Path, real: &str) -> Result<(), Fault> {
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
        Err(Fault::new(Reason::GrantUnusable, message))
    }
}

impl Root {
    /// Follows symlinks, but not out of the workspace.
    fn open(path: &Path, whole: &Whole<'_>) -> Result<Option<Self>, Fault> {
        let unusable = |why: &str| Fault::new(Reason::GrantUnusable, format!("a granted folder {why}"));
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
        // `..` means something else once links are followed, so such a name is not used for comparing.
        let is_plain = !granted.split('/').any(|part| part == "..");
        let granted = if is_plain { normal(granted) } else { real.clone() };
        Ok(Some(Self { granted, real, dir, itself }))
    }

    fn is_file(&self) -> bool {
        self.itself != ITSELF
    }

    /// The same path by the name of the grant.
    pub fn rename(&self, path: &str) -> String {
        below(path, &self.real).map_or_else(|| path.into(), |rest| join(&self.granted, rest))
    }
}

impl Place<'_> {
    /// What the kernel is asked for, from the root's folder.
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

/// What of `path` is left below `folder`: empty for the folder itself.
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

pub(super) fn escapes(asked: &str) -> Fault {
    let message = format!(
        "{} leads out of the folders that this tool may read; absolute symbolic links count as leading out",
        quoted(asked)
    );
    Fault::new(Reason::PathEscapesBase, message)
}

pub(super) fn outside_workspace(asked: &str) -> Fault {
    let message = format!("{} is outside of the workspace; write inside it", quoted(asked));
    Fault::new(Reason::WriteOutsideWorkspace, message)
}

fn check_text(asked: &str) -> Result<(), Fault> {
    if asked.is_empty() {
        return Err(Fault::new(Reason::PathRequired, "the path is empty; use `.` for the workspace"));
    }
    let invalid = |why: &str| Fault::new(Reason::InvalidPath, format!("{} {why}", quoted(asked)));
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

/// A folder, as the kernel is asked for it.
const ITSELF: &str = ".";

/// Below the kernel's 4096, so that the workspace's own path rarely pushes it over; the kernel says so if it does.
const LONGEST_PATH: usize = 4000;
const LONGEST_NAME: usize = 255;
