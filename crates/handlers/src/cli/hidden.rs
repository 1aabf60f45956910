//! Which paths below a folder must a command not see, though it sees the folder? What is blocked by name is named; what is
//! blocked by a pattern is looked for, in the tree as it is just before the command starts, and once more when it has ended.

mod other_names;

use std::{
    collections::BTreeSet,
    fs,
    io::ErrorKind,
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
};

use toolgate_spec::{PathPattern, PathRoots};

pub use self::other_names::{Id, each_of_several_names, has_several_names, id};
use super::made;
use crate::{files::FileGrants, grants};

/// The blocked paths of one tool, ready to be compared with real paths.
#[derive(Debug)]
pub struct Blocked {
    patterns: Vec<Pattern>,
    /// The gateway's own files, whatever the policy says.
    guarded: Vec<PathBuf>,
    bases: Vec<Base>,
    /// Everything that the tool is granted, of which a call may show a part.
    roots: Vec<PathBuf>,
}

#[derive(Debug)]
struct Pattern {
    /// As it was written, and as links in its beginning lead elsewhere.
    spellings: Vec<PathPattern>,
    /// The folders that its literal beginning can mean; the whole path where it has no wildcard.
    starts: Vec<PathBuf>,
    has_wildcard: bool,
    holds_credentials: bool,
    /// The names of folders in its wild part: a link of such a name leads to blocked paths under other names.
    folders: Vec<PathPattern>,
}

/// What a look at the tree found.
#[derive(Debug, Default)]
pub struct Found {
    /// What is blocked, and what was once set aside because it was. A plain path is named whether or not it is there.
    blocked: Vec<PathBuf>,
    /// Links in place of a folder that blocked paths lie in, and folders that cannot be looked into, though perhaps passed.
    doors: Vec<PathBuf>,
}

impl Found {
    /// What is there that a command may not make.
    pub fn present(self) -> BTreeSet<PathBuf> {
        let is_there = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
        self.blocked.into_iter().filter(is_there).chain(self.doors).collect()
    }
}

/// Without `.` and `..`, as text.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
        plain
    })
}

#[derive(Debug)]
struct Base {
    workspace: String,
    home: Option<String>,
}

impl Blocked {
    pub fn new(grants: Option<&FileGrants>, guarded: &[PathBuf]) -> Result<Self, String> {
        let real = |path: &PathBuf| fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        // Links in a name make `..` mean something else; its real name is among those hidden in any case.
        let guarded = guarded.iter().flat_map(|path| [plain(path), real(&plain(path)), real(path)]).collect();
        let Some(grants) = grants else {
            return Ok(Self { patterns: Vec::new(), guarded, bases: Vec::new(), roots: Vec::new() });
        };
        let text = |path: &Path| {
            let unusable =
                || "the workspace or home folder has a name that is not UTF-8; rename it".to_owned();
            path.to_str().map(str::to_owned).ok_or_else(unusable)
        };
        let base = |change: &dyn Fn(&PathBuf) -> PathBuf| {
            let home = grants.home.as_ref().map(|home| text(&change(home))).transpose()?;
            Ok::<_, String>(Base { workspace: text(&change(&grants.pattern_workspace))?, home })
        };
        let bases = vec![base(&PathBuf::clone)?, base(&real)?];
        let patterns =
            grants.blocked.iter().map(|pattern| Pattern::new(pattern, &bases)).collect::<Result<_, _>>()?;
        let roots = std::iter::once(&grants.workspace).chain(&grants.read_roots).map(real).collect();
        Ok(Self { patterns, guarded, bases, roots })
    }

    /// Everything to hide where this was found, or why that cannot be done.
    pub fn hidden(&self, found: &Found) -> Result<Vec<PathBuf>, String> {
        let mut hidden: Vec<PathBuf> = self.guarded.iter().chain(&found.blocked).cloned().collect();
        hidden.sort();
        hidden.dedup();
        if hidden.len() > MOST_HIDDEN {
            return Err(format!(
                "more than {MOST_HIDDEN} paths would have to be hidden; block a folder, or grant a smaller one"
            ));
        }
        Ok(hidden)
    }

    /// Looks below these folders and files, or says why it cannot.
    pub fn look(&self, places: &[PathBuf]) -> Result<Found, String> {
        let mut found = Found::default();
        let mut looked = 0;
        for folder in places {
            let mut searched: Vec<&Pattern> = Vec::new();
            for pattern in &self.patterns {
                let within = |start: &PathBuf| start.starts_with(folder) || folder.starts_with(start);
                if !pattern.has_wildcard {
                    let is_seen = |path: &&PathBuf| within(path) || has_other_name(path);
                    found.blocked.extend(pattern.starts.iter().filter(is_seen).cloned());
                } else if pattern.starts.iter().any(within) {
                    searched.push(pattern);
                }
                for start in
                    pattern.starts.iter().filter(|start| start.starts_with(folder) && *start != folder)
                {
                    found.doors.extend(links_above(start, folder));
                    found.blocked.extend(made::set_aside_from(start));
                }
            }
            if !searched.is_empty() {
                self.search(folder, &searched, &mut looked, &mut found)?;
            }
        }
        Ok(found)
    }

    /// Does a look find nothing, whatever a command makes?
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Links are not followed: what they lead to is hidden where it lies, or not in sight at all.
    fn search(
        &self,
        from: &Path,
        patterns: &[&Pattern],
        looked: &mut usize,
        found: &mut Found,
    ) -> Result<(), String> {
        let mut open = vec![from.to_owned()];
        while let Some(folder) = open.pop() {
            let may_hold = |pattern: &&&Pattern| {
                pattern.starts.iter().any(|start| start.starts_with(&folder) || folder.starts_with(start))
            };
            let patterns: Vec<&Pattern> = patterns.iter().filter(may_hold).copied().collect();
            if patterns.is_empty() {
                continue;
            }
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                // What the gateway cannot look into, its commands cannot either; and a file has nothing below it.
                Err(error) if is_passed_over(error.kind()) => {
                    found.doors.extend((error.kind() == ErrorKind::PermissionDenied).then_some(folder));
                    continue;
                }
                Err(error) => return Err(unreadable(&folder, &error)),
            };
            for entry in entries {
                let entry = entry.map_err(|error| unreadable(&folder, &error))?;
                *looked += 1;
                if *looked > MOST_LOOKED_AT {
                    return Err(format!(
                        "below `{}` lie more than {MOST_LOOKED_AT} entries, too many to look for blocked ones; grant a smaller folder, or block by plain paths",
                        from.display()
                    ));
                }
                let path = entry.path();
                let kind = entry.file_type().ok();
                if patterns.iter().any(|pattern| self.covers(pattern, &path)) {
                    found.blocked.push(path);
                } else if kind.is_some_and(|kind| kind.is_dir()) {
                    open.push(path);
                } else if kind.is_some_and(|kind| kind.is_symlink())
                    && patterns.iter().any(|pattern| pattern.names_folder(&path))
                {
                    found.doors.push(path);
                }
            }
        }
        Ok(())
    }

    /// What was set aside is blocked under its new name, too: it may be somebody else's secret.
    fn covers(&self, pattern: &Pattern, path: &Path) -> bool {
        made::original(path).is_some_and(|original| self.covers_as_named(pattern, &original))
            || self.covers_as_named(pattern, path)
    }

    fn covers_as_named(&self, pattern: &Pattern, path: &Path) -> bool {
        let path = path.to_string_lossy();
        self.bases.iter().any(|base| {
            let roots = PathRoots { workspace: &base.workspace, home: base.home.as_deref() };
            pattern.spellings.iter().any(|spelling| spelling.covers(&path, roots))
        })
    }
}

impl Pattern {
    fn new(pattern: &PathPattern, bases: &[Base]) -> Result<Self, String> {
        let text = pattern.text();
        let mut spellings = vec![pattern.clone()];
        let mut starts = Vec::new();
        let mut folders = Vec::new();
        for base in bases {
            let (folder, rest) = match (text.strip_prefix("$WORKSPACE"), text.strip_prefix("$HOME")) {
                (Some(rest), _) => (base.workspace.as_str(), rest),
                (None, Some(rest)) => match &base.home {
                    Some(home) => (home.as_str(), rest),
                    None => continue,
                },
                (None, None) => ("/", text),
            };
            let parts: Vec<&str> = rest.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
            let (literal, wild) =
                parts.split_at(parts.iter().position(|part| part.contains('*')).unwrap_or(parts.len()));
            let start = literal.iter().fold(PathBuf::from(folder), |path, part| path.join(part));
            folders.extend(folder_names(wild));
            // Links in the beginning lead to the real place, which is where a command would find it.
            if let Some(real) = behind_links(&start)? {
                spellings.push(elsewhere(&real, wild).ok_or_else(|| {
                    format!(
                        "the blocked path `{text}` leads to a name that cannot be blocked; block its folder"
                    )
                })?);
                starts.push(real);
            }
            starts.push(start);
        }
        starts.sort();
        starts.dedup();
        folders.sort();
        folders.dedup();
        let (has_wildcard, holds_credentials) = (text.contains('*'), grants::holds_credentials(pattern));
        Ok(Self { spellings, starts, has_wildcard, holds_credentials, folders })
    }

    fn names_folder(&self, link: &Path) -> bool {
        let Some(name) = link.file_name() else { return false };
        let name = format!("/{}", name.to_string_lossy());
        let nowhere = PathRoots { workspace: "", home: None };
        self.folders.iter().any(|folder| folder.covers(&name, nowhere))
    }
}

/// Each as a path of one name. The last is blocked itself; and a bare `*` would take every link for one.
fn folder_names(wild: &[&str]) -> Vec<PathPattern> {
    let last = wild.iter().rposition(|part| *part != "**").unwrap_or(0);
    let above = wild.get(..last).unwrap_or_default().iter().filter(|part| !matches!(**part, "*" | "**"));
    above.filter_map(|part| PathPattern::parse(&format!("/{part}")).ok()).collect()
}

/// Links at `start` or between it and `folder`, which is none.
fn links_above(start: &Path, folder: &Path) -> Vec<PathBuf> {
    let between = start.ancestors().take_while(|above| *above != folder);
    between.filter(|above| is_link(above)).map(Path::to_owned).collect()
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink())
}

/// Then it may be seen below any folder; whoever hides it looks for it by its number.
fn has_other_name(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_file() && about.nlink() > 1)
}

fn elsewhere(start: &Path, wild: &[&str]) -> Option<PathPattern> {
    let start = start.to_str()?;
    match wild {
        [] => PathPattern::literal(start),
        wild => PathPattern::parse(&format!("{}/{}", start.trim_end_matches('/'), wild.join("/"))).ok(),
    }
}

/// The real place of what exists of a path, and the rest as it stands.
fn behind_links(path: &Path) -> Result<Option<PathBuf>, String> {
    for above in path.ancestors() {
        match fs::canonicalize(above) {
            Ok(real) => {
                let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
                let real = if rest.as_os_str().is_empty() { real } else { real.join(rest) };
                return Ok((real != path).then_some(real));
            }
            Err(error) if is_passed_over(error.kind()) => {}
            Err(error) => return Err(unreadable(above, &error)),
        }
    }
    Ok(None)
}

fn is_passed_over(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("`{}` cannot be searched for blocked paths: {}", path.display(), error.kind())
}

const MOST_LOOKED_AT: usize = 200_000;
const MOST_HIDDEN: usize = 1_000;
