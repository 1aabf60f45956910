//! Blocked paths that must be hidden although the directory around them is visible. Plain paths are hidden by name.
//! Patterns are searched for in the tree before the command starts, and again after it ended.

mod aliases;
mod mounts;
mod system;

use std::{
    collections::{BTreeSet, VecDeque},
    fmt, fs,
    io::{self, ErrorKind},
    os::unix::fs::DirEntryExt as _,
    path::{Component, Path, PathBuf},
};

use rustix::io::Errno;
use toolgate_gate::StopFlag;
use toolgate_spec::{PathPattern, PathRoots};

pub use self::aliases::for_each_hard_link;
use super::{budget::EntryBudget, quarantine};
use crate::{
    files::{FileGrants, PatternBase},
    grants,
    hard_links::is_hard_linked,
};

/// The blocked paths of one tool, prepared for comparison with real paths.
#[derive(Debug)]
pub struct BlockedPaths {
    patterns: Vec<BlockedPattern>,
    /// The gateway's files, which are always blocked.
    guarded: Vec<PathBuf>,
    bases: Vec<PatternBase>,
    /// Everything granted to the tool. A call may show only a part of it.
    roots: Vec<PathBuf>,
}

#[derive(Debug)]
struct BlockedPattern {
    /// The pattern as written, and with the symlinks of its literal prefix resolved.
    spellings: Vec<PathPattern>,
    /// The directories that its literal prefix can mean; without a wildcard, the whole path.
    starts: Vec<PathBuf>,
    has_wildcard: bool,
    holds_credentials: bool,
    /// Names of directories in its wildcard part. A symlink with such a name gives blocked paths other names.
    folders: Vec<PathPattern>,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct BlockedFindings {
    /// Blocked paths, and paths quarantined earlier. Plain paths are listed even if they do not exist.
    pub blocked: Vec<PathBuf>,
    /// Symlinks in place of a directory that contains blocked paths, and new directories that cannot be opened.
    pub doors: Vec<PathBuf>,
    /// Directories that the gateway cannot open before a run. Their owner could open them, and the command runs as
    /// the same user.
    pub closed: BTreeSet<PathBuf>,
    /// The inodes of all directories before a run.
    pub folders: BTreeSet<u64>,
    /// Why the search is incomplete. The other findings are still valid.
    pub trouble: Option<String>,
}

/// The tree before a run, for the search after it.
pub struct TreeBefore<'a> {
    pub folders: &'a BTreeSet<u64>,
    pub closed: &'a BTreeSet<PathBuf>,
    /// Restores access to a directory that the command may have closed.
    pub reopen: &'a dyn Fn(&Path),
}

/// A directory to search.
#[derive(Debug)]
struct PendingDir {
    path: PathBuf,
    /// The topmost new directory around it, if any.
    made: Option<PathBuf>,
}

impl TreeBefore<'_> {
    /// Whether it was inaccessible before; then it was hidden from the command and stays closed.
    pub fn was_closed(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.closed.contains(above))
    }
}

impl fmt::Debug for TreeBefore<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeBefore").field("closed", &self.closed).finish_non_exhaustive()
    }
}

impl BlockedFindings {
    /// Existing paths that a command may not create. A path counts as existing if that cannot be checked.
    pub fn present(&self) -> BTreeSet<PathBuf> {
        let is_there = |path: &&PathBuf| match fs::symlink_metadata(path) {
            Ok(_) => true,
            Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        self.blocked.iter().filter(is_there).chain(&self.doors).cloned().collect()
    }

    /// A directory inside `around`.
    fn folder(
        &mut self,
        around: &PendingDir,
        path: PathBuf,
        number: u64,
        after: Option<&TreeBefore<'_>>,
    ) -> PendingDir {
        let made = match after {
            None => {
                self.folders.insert(number);
                None
            }
            Some(_) if around.made.is_some() => around.made.clone(),
            Some(after) => (!after.folders.contains(&number)).then(|| path.clone()),
        };
        PendingDir { path, made }
    }

    fn note_problem(&mut self, why: String) {
        self.trouble.get_or_insert(why);
    }

    /// Handles a directory that cannot be listed.
    fn skip_dir(&mut self, folder: PendingDir, error: &io::Error, after: Option<&TreeBefore<'_>>) {
        match (error.kind(), after) {
            // A file has no entries.
            (ErrorKind::NotFound | ErrorKind::NotADirectory, _) => {}
            (ErrorKind::PermissionDenied, None) => self.closed.extend([folder.path]),
            (ErrorKind::PermissionDenied, Some(after)) if after.was_closed(&folder.path) => {}
            // Only for new directories: in a renamed old directory, its blocked names would no longer be blocked.
            (ErrorKind::PermissionDenied, Some(_)) if folder.made.is_some() => self.doors.push(folder.path),
            _ => {
                self.note_problem(unreadable(&folder.path, error));
                // A path that is too long to be opened may contain anything.
                if Errno::from_io_error(error) == Some(Errno::NAMETOOLONG) {
                    self.doors.extend(folder.made);
                }
            }
        }
    }
}

/// Removes `.` and `..` without resolving symlinks.
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

impl BlockedPaths {
    pub fn new(grants: Option<&FileGrants>, guarded: &[PathBuf]) -> Result<Self, String> {
        let real = |path: &PathBuf| fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        // With symlinks, `..` may lead elsewhere; the real path is hidden in any case.
        let guarded: BTreeSet<PathBuf> =
            guarded.iter().flat_map(|path| [plain(path), real(&plain(path)), real(path)]).collect();
        let guarded: Vec<PathBuf> = guarded.into_iter().collect();
        let Some(grants) = grants else {
            return Ok(Self { patterns: Vec::new(), guarded, bases: Vec::new(), roots: Vec::new() });
        };
        let text = |path: &Path| {
            let unusable =
                || "the workspace or home directory has a name that is not UTF-8; rename it".to_owned();
            path.to_str().map(str::to_owned).ok_or_else(unusable)
        };
        let base = |change: &dyn Fn(&PathBuf) -> PathBuf| {
            Ok::<_, String>(PatternBase {
                workspace: text(&change(&grants.pattern_workspace))?,
                home: text(&change(&grants.home))?,
            })
        };
        let bases = vec![base(&PathBuf::clone)?, base(&real)?];
        let patterns = grants
            .blocked
            .iter()
            .map(|pattern| BlockedPattern::new(pattern, &bases))
            .collect::<Result<_, _>>()?;
        let roots = std::iter::once(&grants.workspace).chain(&grants.read_roots).map(real).collect();
        Ok(Self { patterns, guarded, bases, roots })
    }

    /// All paths to hide, from these findings, places and system paths.
    ///
    /// Without places, the disk of the guarded files is not read: a closed directory only matters if its owner could
    /// open it, and system directories are read-only in a jail.
    pub fn hidden(
        &self,
        places: &[PathBuf],
        found: &BlockedFindings,
        in_system: BTreeSet<PathBuf>,
    ) -> Result<Vec<PathBuf>, String> {
        let guarded = if places.is_empty() { [].as_slice() } else { &self.guarded };
        let closed = guarded.iter().filter_map(|path| closed_above(path));
        let named = self.guarded.iter().chain(&found.blocked).chain(&found.closed).cloned();
        let mut hidden: Vec<PathBuf> = named.chain(closed).chain(in_system).collect();
        hidden.sort();
        hidden.dedup();
        if hidden.len() > MOST_HIDDEN {
            return Err(format!(
                "more than {MOST_HIDDEN} paths would have to be hidden; block a directory, or grant a smaller one"
            ));
        }
        Ok(hidden)
    }

    /// The paths that may be large directories with little to hide.
    pub fn large_of(&self, hidden: &[PathBuf]) -> Vec<PathBuf> {
        let holding = self.patterns.iter().filter(|pattern| pattern.holds_credentials);
        let places: BTreeSet<&PathBuf> = holding.flat_map(|pattern| &pattern.starts).collect();
        hidden.iter().filter(|path| places.contains(path)).cloned().collect()
    }

    /// Searches below these directories and files.
    pub fn look(
        &self,
        places: &[PathBuf],
        after: Option<&TreeBefore<'_>>,
        stop: &StopFlag,
    ) -> BlockedFindings {
        let mut found = BlockedFindings::default();
        // Plain paths first, because a search may be stopped.
        for place in places {
            for pattern in &self.patterns {
                pattern.find_by_name(place, after, stop, &mut found);
            }
        }
        let mut budget = EntryBudget::new(MOST_SEARCHED, stop);
        for place in places {
            let may_lie = |pattern: &&BlockedPattern| pattern.has_wildcard && pattern.may_lie_around(place);
            let searched: Vec<&BlockedPattern> = self.patterns.iter().filter(may_lie).collect();
            if !searched.is_empty() {
                self.search(place, &searched, after, &mut budget, &mut found);
            }
        }
        found
    }

    /// Whether this path is blocked by its name.
    pub fn blocks(&self, path: &Path) -> bool {
        self.guarded.iter().any(|own| path.starts_with(own))
            || self.patterns.iter().any(|pattern| self.covers(pattern, path))
    }

    /// Whether a search can never find anything.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Does not follow symlinks: their targets are hidden at their own place, or not visible.
    fn search(
        &self,
        from: &Path,
        patterns: &[&BlockedPattern],
        after: Option<&TreeBefore<'_>>,
        budget: &mut EntryBudget<'_>,
        found: &mut BlockedFindings,
    ) {
        let mut open = VecDeque::from([PendingDir { path: from.to_owned(), made: None }]);
        while let Some(folder) = open.pop_back() {
            if budget.is_stopped() {
                found.note_problem(CHECK_STOPPED.to_owned());
                return;
            }
            let may_hold = |pattern: &&&BlockedPattern| pattern.may_lie_around(&folder.path);
            let patterns: Vec<&BlockedPattern> = patterns.iter().filter(may_hold).copied().collect();
            if patterns.is_empty() {
                continue;
            }
            let entries = match list(&folder.path, after) {
                Ok(entries) => entries,
                Err(error) => {
                    found.skip_dir(folder, &error, after);
                    continue;
                }
            };
            for entry in entries {
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(error) => {
                        found.note_problem(unreadable(&folder.path, &error));
                        break;
                    }
                };
                if !budget.spend_one() {
                    found.note_problem(too_many(from));
                    return;
                }
                let (path, kind) = (entry.path(), entry.file_type().ok());
                let is_named = || patterns.iter().any(|pattern| pattern.names_folder(&path));
                if quarantine::has_lost_its_name(&path) || patterns.iter().any(|one| self.covers(one, &path))
                {
                    found.blocked.push(path);
                } else if kind.is_some_and(|kind| kind.is_dir()) {
                    // Directories that probably contain blocked paths come first, in case the budget runs out.
                    let place = if is_named() { open.len() } else { 0 };
                    let next = found.folder(&folder, path, entry.ino(), after);
                    open.insert(place, next);
                } else if kind.is_some_and(|kind| kind.is_symlink()) && is_named() {
                    found.doors.push(path);
                }
            }
        }
    }

    /// A quarantined path is also blocked under its new name, because it may contain a secret.
    fn covers(&self, pattern: &BlockedPattern, path: &Path) -> bool {
        quarantine::original(path).is_some_and(|original| self.covers_as_named(pattern, &original))
            || self.covers_as_named(pattern, path)
    }

    fn covers_as_named(&self, pattern: &BlockedPattern, path: &Path) -> bool {
        let path = path.to_string_lossy();
        self.bases
            .iter()
            .any(|base| pattern.spellings.iter().any(|spelling| spelling.covers(&path, base.roots())))
    }
}

impl BlockedPattern {
    fn new(pattern: &PathPattern, bases: &[PatternBase]) -> Result<Self, String> {
        let text = pattern.text();
        let mut spellings = vec![pattern.clone()];
        let mut starts = Vec::new();
        let mut folders = Vec::new();
        for base in bases {
            let (folder, rest) = match (text.strip_prefix("$WORKSPACE"), text.strip_prefix("$HOME")) {
                (Some(rest), _) => (base.workspace.as_str(), rest),
                (None, Some(rest)) => (base.home.as_str(), rest),
                (None, None) => ("/", text),
            };
            let parts: Vec<&str> = rest.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
            let (literal, wild) =
                parts.split_at(parts.iter().position(|part| part.contains('*')).unwrap_or(parts.len()));
            let start = literal.iter().fold(PathBuf::from(folder), |path, part| path.join(part));
            folders.extend(folder_names(wild));
            // Symlinks in the prefix lead to the real directory, where a command would find the path.
            if let Some(real) = behind_links(&start)? {
                spellings.push(elsewhere(&real, wild).ok_or_else(|| {
                    format!(
                        "the blocked path `{text}` leads to a name that cannot be blocked; block its directory"
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

    fn may_lie_around(&self, folder: &Path) -> bool {
        self.starts.iter().any(|start| start.starts_with(folder) || folder.starts_with(start))
    }

    /// Finds what needs no search.
    fn find_by_name(
        &self,
        place: &Path,
        after: Option<&TreeBefore<'_>>,
        stop: &StopFlag,
        found: &mut BlockedFindings,
    ) {
        if stop.is_set() {
            found.note_problem(CHECK_STOPPED.to_owned());
            return;
        }
        let below = |start: &&PathBuf| start.starts_with(place) && *start != place;
        for above in self.starts.iter().filter(below).filter_map(|start| start.parent()) {
            if list(above, after).is_err_and(|error| is_denied(&error)) && after.is_none() {
                found.closed.insert(closed_above(above).unwrap_or_else(|| above.to_owned()));
            }
        }
        if !self.has_wildcard {
            // A hard-linked file may be visible in any directory. The jail searches for it by inode.
            let has_another =
                |start: &Path| fs::symlink_metadata(start).is_ok_and(|about| is_hard_linked(&about));
            let is_seen =
                |start: &&PathBuf| start.starts_with(place) || place.starts_with(start) || has_another(start);
            found.blocked.extend(self.starts.iter().filter(is_seen).cloned());
        }
        for start in self.starts.iter().filter(below) {
            found.doors.extend(links_above(start, place));
            found.blocked.extend(quarantine::set_aside_from(start, stop));
        }
    }

    fn names_folder(&self, link: &Path) -> bool {
        let Some(name) = link.file_name() else { return false };
        let name = format!("/{}", name.to_string_lossy());
        let nowhere = PathRoots { workspace: "", home: "" };
        self.folders.iter().any(|folder| folder.covers(&name, nowhere))
    }
}

/// Each as a path with one name. The last name is blocked itself, and a bare `*` would match every symlink.
fn folder_names(wild: &[&str]) -> Vec<PathPattern> {
    let last = wild.iter().rposition(|part| *part != "**").unwrap_or(0);
    let above = wild.get(..last).unwrap_or_default().iter().filter(|part| !matches!(**part, "*" | "**"));
    above.filter_map(|part| PathPattern::parse(&format!("/{part}")).ok()).collect()
}

/// Lists a directory, and restores access if a command closed it.
fn list(folder: &Path, after: Option<&TreeBefore<'_>>) -> io::Result<fs::ReadDir> {
    let listed = fs::read_dir(folder);
    match after {
        Some(after) if listed.as_ref().is_err_and(is_denied) && !after.was_closed(folder) => {
            (after.reopen)(folder);
            fs::read_dir(folder)
        }
        _ => listed,
    }
}

/// The outermost directory that denies access to this path or its contents.
fn closed_above(path: &Path) -> Option<PathBuf> {
    let is_closed =
        |folder: &Path| fs::symlink_metadata(folder.join(".")).is_err_and(|error| is_denied(&error));
    path.ancestors().take_while(|above| is_closed(above)).last().map(Path::to_owned)
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied
}

/// Symlinks at `start` or between it and `folder`.
fn links_above(start: &Path, folder: &Path) -> Vec<PathBuf> {
    let between = start.ancestors().take_while(|above| *above != folder);
    between.filter(|above| is_link(above)).map(Path::to_owned).collect()
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink())
}

fn elsewhere(start: &Path, wild: &[&str]) -> Option<PathPattern> {
    let start = start.to_str()?;
    match wild {
        [] => PathPattern::literal(start),
        wild => PathPattern::parse(&format!("{}/{}", start.trim_end_matches('/'), wild.join("/"))).ok(),
    }
}

/// Resolves the existing part of a path, and appends the rest.
fn behind_links(path: &Path) -> Result<Option<PathBuf>, String> {
    for above in path.ancestors() {
        match fs::canonicalize(above) {
            Ok(real) => {
                let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
                let real = if rest.as_os_str().is_empty() { real } else { real.join(rest) };
                return Ok((real != path).then_some(real));
            }
            Err(error) if is_skipped(error.kind()) => {}
            Err(error) => return Err(unreadable(above, &error)),
        }
    }
    Ok(None)
}

fn is_skipped(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("`{}` cannot be searched for blocked paths: {}", path.display(), error.kind())
}

fn too_many(from: &Path) -> String {
    format!(
        "`{}` contains more than {MOST_SEARCHED} entries, too many to search for blocked paths; grant a smaller directory, or block plain paths",
        from.display()
    )
}

/// The error of a stopped search. No caller is left to see it.
pub const CHECK_STOPPED: &str = "the check was stopped, because the caller no longer waits";
const MOST_SEARCHED: usize = 200_000;
const MOST_HIDDEN: usize = 1_000;
