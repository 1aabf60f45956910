//! Decides whether the policy grants a path under all of its names.
//!
//! A root that is reached through a symlink has two names: the one in the grant and the real one. A block applies to
//! both. The symlinks in the literal prefix of a blocked path are also resolved, so blocking `/var/run/x` blocks
//! `/run/x`. `blocked_links.rs` handles hard links. Case-insensitive file systems are not supported.

use std::{
    fs,
    path::{Path, PathBuf},
};

use toolgate_spec::{PathPattern, PathRoots};

use super::{
    error::{FileFault, FileReason, quoted},
    grants::FileGrants,
    roots::{GrantedRoots, below, join},
};

#[derive(Debug)]
pub(super) struct PathPolicy {
    allowed: Vec<PathPattern>,
    blocked: Vec<PathPattern>,
    /// By the names in the grant, and by the real ones if they differ.
    bases: Vec<PatternBase>,
}

/// The directories that `$WORKSPACE` and `$HOME` stand for in patterns.
#[derive(Debug, PartialEq)]
pub(crate) struct PatternBase {
    pub workspace: String,
    pub home: String,
}

impl PatternBase {
    pub fn roots(&self) -> PathRoots<'_> {
        PathRoots { workspace: &self.workspace, home: &self.home }
    }
}

impl PathPolicy {
    pub fn new(grants: &FileGrants) -> Result<Self, FileFault> {
        let (granted_home, real_home) = names_of(&grants.home)?;
        let (granted_workspace, real_workspace) = names_of(&grants.pattern_workspace)?;
        let granted = PatternBase { workspace: granted_workspace, home: granted_home };
        let real = PatternBase { workspace: real_workspace, home: real_home };
        let mut blocked = grants.blocked.clone();
        for pattern in &grants.blocked {
            blocked.extend(behind_links(pattern, real.roots())?);
        }
        let bases = if granted == real { vec![real] } else { vec![granted, real] };
        Ok(Self { allowed: grants.allowed.clone(), blocked, bases })
    }

    /// Checks an absolute clean path below a root's real path.
    pub fn check(&self, path: &str, roots: &GrantedRoots, asked: &str) -> Result<(), FileFault> {
        match self.verdict(path, roots) {
            None => Ok(()),
            Some(FileReason::PathBlocked) => {
                let message = format!("{} is blocked for this tool", quoted(asked));
                Err(FileFault::new(FileReason::PathBlocked, message))
            }
            Some(reason) => {
                let message = format!("{} is not among the paths allowed to this tool", quoted(asked));
                Err(FileFault::new(reason, message))
            }
        }
    }

    pub fn grants(&self, path: &str, roots: &GrantedRoots) -> bool {
        self.verdict(path, roots).is_none()
    }

    pub fn blocks(&self, path: &str, roots: &GrantedRoots) -> bool {
        self.verdict(path, roots) == Some(FileReason::PathBlocked)
    }

    /// The literal prefixes of the blocked patterns.
    pub fn blocked_starts(&self) -> impl Iterator<Item = PathBuf> {
        let start = |pattern: &PathPattern, base: &PatternBase| {
            let written = written(pattern.text(), base.roots());
            let parts = written.split('/').filter(|part| !matches!(*part, "" | "."));
            parts
                .take_while(|part| !part.contains('*'))
                .fold(PathBuf::from("/"), |path, part| path.join(part))
        };
        self.blocked.iter().flat_map(move |pattern| self.bases.iter().map(move |base| start(pattern, base)))
    }

    fn verdict(&self, path: &str, roots: &GrantedRoots) -> Option<FileReason> {
        let mut names = vec![path.to_owned()];
        for root in roots.iter().filter(|root| root.real != root.granted) {
            if below(path, &root.real).is_some() {
                names.push(root.rename(path));
            }
        }
        let covered = |patterns: &[PathPattern]| {
            patterns.iter().any(|pattern| {
                names.iter().any(|name| self.bases.iter().any(|base| pattern.covers(name, base.roots())))
            })
        };
        if covered(&self.blocked) {
            return Some(FileReason::PathBlocked);
        }
        (!covered(&self.allowed)).then_some(FileReason::PathNotAllowed)
    }
}

/// The path of a directory in the grant, and its real path.
fn names_of(folder: &Path) -> Result<(String, String), FileFault> {
    let unusable = || {
        FileFault::new(
            FileReason::GrantUnusable,
            "the home folder or workspace has a name that is not UTF-8; rename it",
        )
    };
    let granted = folder.to_str().ok_or_else(unusable)?.to_owned();
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    Ok((granted, real.to_str().ok_or_else(unusable)?.to_owned()))
}

/// Replaces `$WORKSPACE` and `$HOME`.
fn written(text: &str, base: PathRoots<'_>) -> String {
    match (text.strip_prefix("$WORKSPACE"), text.strip_prefix("$HOME")) {
        (Some(rest), _) => format!("{}/{rest}", base.workspace),
        (None, Some(rest)) => format!("{}/{rest}", base.home),
        (None, None) => text.to_owned(),
    }
}

/// The same pattern with the symlinks of its prefix resolved, if that changes it.
fn behind_links(pattern: &PathPattern, base: PathRoots<'_>) -> Result<Option<PathPattern>, FileFault> {
    let text = pattern.text();
    let written = written(text, base);
    let parts: Vec<&str> = written.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let literal = parts.iter().take_while(|part| !part.contains('*')).count();
    // Resolves the longest existing prefix; the rest has no symlinks.
    for length in (1..=literal).rev() {
        let (exists, rest) = parts.split_at(length);
        let exists = format!("/{}", exists.join("/"));
        let Ok(real) = fs::canonicalize(&exists) else { continue };
        if real == Path::new(&exists) {
            return Ok(None);
        }
        let real = real.to_str().map(|real| join(real, &rest.join("/")));
        let pattern = real.and_then(|real| PathPattern::parse(&real).ok()).ok_or_else(|| {
            let message = format!(
                "blocked path {} leads to a name that cannot be blocked; block its directory",
                quoted(text)
            );
            FileFault::new(FileReason::GrantUnusable, message)
        })?;
        return Ok(Some(pattern));
    }
    Ok(None)
}
