//! Does the policy grant this path, by any of its names?
//!
//! A file has several names: the one in the grant and the real one, where a root is reached through a link. A block
//! counts under each of them, and the literal beginning of a blocked path is also taken as links make of it now, so that
//! blocking `/var/run/x` blocks `/run/x`. Hard links are the matter of `twins.rs`. Not seen: folders whose file system
//! ignores letter case.

use std::{
    fs,
    path::{Path, PathBuf},
};

use toolgate_spec::{PathPattern, PathRoots};

use super::{
    error::{Fault, Reason, quoted},
    grants::FileGrants,
    place::{Roots, below, join},
};

#[derive(Debug)]
pub(super) struct Judge {
    allowed: Vec<PathPattern>,
    blocked: Vec<PathPattern>,
    /// By the names in the grant, and by the real ones where they differ.
    bases: Vec<Base>,
}

#[derive(Debug, PartialEq)]
struct Base {
    workspace: String,
    home: String,
}

impl Base {
    fn roots(&self) -> PathRoots<'_> {
        PathRoots { workspace: &self.workspace, home: &self.home }
    }
}

impl Judge {
    pub fn new(grants: &FileGrants) -> Result<Self, Fault> {
        let (granted_home, real_home) = names_of(&grants.home)?;
        let (granted_workspace, real_workspace) = names_of(&grants.pattern_workspace)?;
        let granted = Base { workspace: granted_workspace, home: granted_home };
        let real = Base { workspace: real_workspace, home: real_home };
        let mut blocked = grants.blocked.clone();
        for pattern in &grants.blocked {
            blocked.extend(behind_links(pattern, real.roots())?);
        }
        let bases = if granted == real { vec![real] } else { vec![granted, real] };
        Ok(Self { allowed: grants.allowed.clone(), blocked, bases })
    }

    /// Judges an absolute clean path below a root's real path.
    pub fn check(&self, path: &str, roots: &Roots, asked: &str) -> Result<(), Fault> {
        match self.verdict(path, roots) {
            None => Ok(()),
            Some(Reason::PathBlocked) => {
                let message = format!("{} is blocked for this tool", quoted(asked));
                Err(Fault::new(Reason::PathBlocked, message))
            }
            Some(reason) => {
                let message = format!("{} is not among the paths allowed to this tool", quoted(asked));
                Err(Fault::new(reason, message))
            }
        }
    }

    pub fn grants(&self, path: &str, roots: &Roots) -> bool {
        self.verdict(path, roots).is_none()
    }

    pub fn blocks(&self, path: &str, roots: &Roots) -> bool {
        self.verdict(path, roots) == Some(Reason::PathBlocked)
    }

    /// Where what is blocked begins: the whole path, or what comes before its first wildcard.
    pub fn blocked_starts(&self) -> impl Iterator<Item = PathBuf> {
        let start = |pattern: &PathPattern, base: &Base| {
            let written = written(pattern.text(), base.roots());
            let parts = written.split('/').filter(|part| !matches!(*part, "" | "."));
            parts
                .take_while(|part| !part.contains('*'))
                .fold(PathBuf::from("/"), |path, part| path.join(part))
        };
        self.blocked.iter().flat_map(move |pattern| self.bases.iter().map(move |base| start(pattern, base)))
    }

    fn verdict(&self, path: &str, roots: &Roots) -> Option<Reason> {
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
            return Some(Reason::PathBlocked);
        }
        (!covered(&self.allowed)).then_some(Reason::PathNotAllowed)
    }
}

/// A folder's name in the grant, and its real one.
fn names_of(folder: &Path) -> Result<(String, String), Fault> {
    let unusable = || {
        Fault::new(
            Reason::GrantUnusable,
            "the home folder or workspace has a name that is not UTF-8; rename it",
        )
    };
    let granted = folder.to_str().ok_or_else(unusable)?.to_owned();
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    Ok((granted, real.to_str().ok_or_else(unusable)?.to_owned()))
}

/// With the folder in place of its name.
fn written(text: &str, base: PathRoots<'_>) -> String {
    match (text.strip_prefix("$WORKSPACE"), text.strip_prefix("$HOME")) {
        (Some(rest), _) => format!("{}/{rest}", base.workspace),
        (None, Some(rest)) => format!("{}/{rest}", base.home),
        (None, None) => text.to_owned(),
    }
}

/// The same block by the path that links lead to, where that is another one.
fn behind_links(pattern: &PathPattern, base: PathRoots<'_>) -> Result<Option<PathPattern>, Fault> {
    let text = pattern.text();
    let written = written(text, base);
    let parts: Vec<&str> = written.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let literal = parts.iter().take_while(|part| !part.contains('*')).count();
    // The longest beginning that exists is resolved; what does not exist has no links.
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
                "blocked path {} leads to a name that cannot be blocked; block its folder",
                quoted(text)
            );
            Fault::new(Reason::GrantUnusable, message)
        })?;
        return Ok(Some(pattern));
    }
    Ok(None)
}
