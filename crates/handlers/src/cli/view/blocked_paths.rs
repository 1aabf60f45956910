//! Which paths below a folder must a command not see, though it sees the folder? What is blocked by name is named; what is
//! blocked by a pattern is looked for, in the tree as it is just before the command starts, and once more when it has ended.

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
use toolgate_spec::{PathPattern, PathRoots};

pub use self::aliases::each_of_several_names;
use super::{
    budget::{Budget, Stop},
    quarantine,
};
use crate::{files::FileGrants, grants, several_names::has_several_names};

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
    pub blocked: Vec<PathBuf>,
    /// Links in place of a folder that blocked paths lie in, and new folders that nobody can look into.
    pub doors: Vec<PathBuf>,
    /// Folders that are closed to us before a run. Their owner, who is the command's user as well, can open them.
    pub closed: BTreeSet<PathBuf>,
    /// The numbers of all folders that were there before a run.
    pub folders: BTreeSet<u64>,
    /// Why not everything was looked at. What was found until then counts all the same.
    pub trouble: Option<String>,
}

/// What a look after a run knows of the tree before it.
pub struct After<'a> {
    pub folders: &'a BTreeSet<u64>,
    pub closed: &'a BTreeSet<PathBuf>,
    /// Lets us into a folder that the command may have closed.
    pub open_up: &'a dyn Fn(&Path),
}

/// A folder to look into.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// The topmost folder around it that was not there before the run.
    made: Option<PathBuf>,
}

impl After<'_> {
    /// Then it was hidden from the command, and is not ours to open.
    pub fn was_closed(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.closed.contains(above))
    }
}

impl fmt::Debug for After<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("After").field("closed", &self.closed).finish_non_exhaustive()
    }
}

impl Found {
    /// What is there that a command may not make. Where nobody can tell, it is.
    pub fn present(&self) -> BTreeSet<PathBuf> {
        let is_there = |path: &&PathBuf| match fs::symlink_metadata(path) {
            Ok(_) => true,
            Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        self.blocked.iter().filter(is_there).chain(&self.doors).cloned().collect()
    }

    /// One that lies in `around`.
    fn folder(&mut self, around: &Folder, path: PathBuf, number: u64, after: Option<&After<'_>>) -> Folder {
        let made = match after {
            None => {
                self.folders.insert(number);
                None
            }
            Some(_) if around.made.is_some() => around.made.clone(),
            Some(after) => (!after.folders.contains(&number)).then(|| path.clone()),
        };
        Folder { path, made }
    }

    fn note_trouble(&mut self, why: String) {
        self.trouble.get_or_insert(why);
    }

    /// A folder that cannot be listed.
    fn pass_over(&mut self, folder: Folder, error: &io::Error, after: Option<&After<'_>>) {
        match (error.kind(), after) {
            // A file has nothing below it.
            (ErrorKind::NotFound | ErrorKind::NotADirectory, _) => {}
            (ErrorKind::PermissionDenied, None) => self.closed.extend([folder.path]),
            (ErrorKind::PermissionDenied, Some(after)) if after.was_closed(&folder.path) => {}
            // Never one that was there before: renamed, its blocked names would be blocked no more.
            (ErrorKind::PermissionDenied, Some(_)) if folder.made.is_some() => self.doors.push(folder.path),
            _ => {
                self.note_trouble(unreadable(&folder.path, error));
                // What is too deep to be named may hold anything.
                if Errno::from_io_error(error) == Some(Errno::NAMETOOLONG) {
                    self.doors.extend(folder.made);
                }
            }
        }
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
    home: String,
}

impl Blocked {
    pub fn new(grants: Option<&FileGrants>, guarded: &[PathBuf]) -> Result<Self, String> {
        let real = |path: &PathBuf| fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        // Links in a name make `..` mean something else; its real name is among those hidden in any case.
        let guarded: BTreeSet<PathBuf> =
            guarded.iter().flat_map(|path| [plain(path), real(&plain(path)), real(path)]).collect();
        let guarded: Vec<PathBuf> = guarded.into_iter().collect();
        let Some(grants) = grants else {
            return Ok(Self { patterns: Vec::new(), guarded, bases: Vec::new(), roots: Vec::new() });
        };
        let text = |path: &Path| {
            let unusable =
                || "the workspace or home folder has a name that is not UTF-8; rename it".to_owned();
            path.to_str().map(str::to_owned).ok_or_else(unusable)
        };
        let base = |change: &dyn Fn(&PathBuf) -> PathBuf| {
            Ok::<_, String>(Base {
                workspace: text(&change(&grants.pattern_workspace))?,
                home: text(&change(&grants.home))?,
            })
        };
        let bases = vec![base(&PathBuf::clone)?, base(&real)?];
        let patterns =
            grants.blocked.iter().map(|pattern| Pattern::new(pattern, &bases)).collect::<Result<_, _>>()?;
        let roots = std::iter::once(&grants.workspace).chain(&grants.read_roots).map(real).collect();
        Ok(Self { patterns, guarded, bases, roots })
    }

    /// Everything to hide where this was found, in these places and in the system's folders, or why that cannot be done.
    ///
    /// Without places the disk of the guarded files is not read: a closed directory counts only where its owner could open it, and
    /// the system's folders are read-only in a jail.
    pub fn hidden(
        &self,
        places: &[PathBuf],
        found: &Found,
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
                "more than {MOST_HIDDEN} paths would have to be hidden; block a folder, or grant a smaller one"
            ));
        }
        Ok(hidden)
    }

    /// Which of these may be large folders with little in them to hide.
    pub fn large_of(&self, hidden: &[PathBuf]) -> Vec<PathBuf> {
        let holding = self.patterns.iter().filter(|pattern| pattern.holds_credentials);
        let places: BTreeSet<&PathBuf> = holding.flat_map(|pattern| &pattern.starts).collect();
        hidden.iter().filter(|path| places.contains(path)).cloned().collect()
    }

    /// Looks below these folders and files.
    pub fn look(&self, places: &[PathBuf], after: Option<&After<'_>>, stop: &Stop) -> Found {
        let mut found = Found::default();
        // What is named is looked at first: a search may have to be given up.
        for place in places {
            for pattern in &self.patterns {
                pattern.look_by_name(place, after, stop, &mut found);
            }
        }
        let mut budget = Budget::new(MOST_LOOKED_AT, stop);
        for place in places {
            let may_lie = |pattern: &&Pattern| pattern.has_wildcard && pattern.may_lie_around(place);
            let searched: Vec<&Pattern> = self.patterns.iter().filter(may_lie).collect();
            if !searched.is_empty() {
                self.search(place, &searched, after, &mut budget, &mut found);
            }
        }
        found
    }

    /// Is this path blocked by its name, wherever it lies?
    pub fn blocks(&self, path: &Path) -> bool {
        self.guarded.iter().any(|own| path.starts_with(own))
            || self.patterns.iter().any(|pattern| self.covers(pattern, path))
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
        after: Option<&After<'_>>,
        budget: &mut Budget<'_>,
        found: &mut Found,
    ) {
        let mut open = VecDeque::from([Folder { path: from.to_owned(), made: None }]);
        while let Some(folder) = open.pop_back() {
            if budget.is_stopped() {
                found.note_trouble(NOBODY_WAITS.to_owned());
                return;
            }
            let may_hold = |pattern: &&&Pattern| pattern.may_lie_around(&folder.path);
            let patterns: Vec<&Pattern> = patterns.iter().filter(may_hold).copied().collect();
            if patterns.is_empty() {
                continue;
            }
            let entries = match list(&folder.path, after) {
                Ok(entries) => entries,
                Err(error) => {
                    found.pass_over(folder, &error, after);
                    continue;
                }
            };
            for entry in entries {
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(error) => {
                        found.note_trouble(unreadable(&folder.path, &error));
                        break;
                    }
                };
                if !budget.spend_one() {
                    found.note_trouble(too_many(from));
                    return;
                }
                let (path, kind) = (entry.path(), entry.file_type().ok());
                let is_named = || patterns.iter().any(|pattern| pattern.names_folder(&path));
                if quarantine::has_lost_its_name(&path) || patterns.iter().any(|one| self.covers(one, &path))
                {
                    found.blocked.push(path);
                } else if kind.is_some_and(|kind| kind.is_dir()) {
                    // Where blocked paths are likely is looked first, in case there is too much to look at.
                    let place = if is_named() { open.len() } else { 0 };
                    let next = found.folder(&folder, path, entry.ino(), after);
                    open.insert(place, next);
                } else if kind.is_some_and(|kind| kind.is_symlink()) && is_named() {
                    found.doors.push(path);
                }
            }
        }
    }

    /// What was set aside is blocked under its new name, too: it may be somebody else's secret.
    fn covers(&self, pattern: &Pattern, path: &Path) -> bool {
        quarantine::original(path).is_some_and(|original| self.covers_as_named(pattern, &original))
            || self.covers_as_named(pattern, path)
    }

    fn covers_as_named(&self, pattern: &Pattern, path: &Path) -> bool {
        let path = path.to_string_lossy();
        self.bases.iter().any(|base| {
            let roots = PathRoots { workspace: &base.workspace, home: &base.home };
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
                (None, Some(rest)) => (base.home.as_str(), rest),
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

    fn may_lie_around(&self, folder: &Path) -> bool {
        self.starts.iter().any(|start| start.starts_with(folder) || folder.starts_with(start))
    }

    /// What can be found without a search.
    fn look_by_name(&self, place: &Path, after: Option<&After<'_>>, stop: &Stop, found: &mut Found) {
        if stop.is_asked() {
            found.note_trouble(NOBODY_WAITS.to_owned());
            return;
        }
        let below = |start: &&PathBuf| start.starts_with(place) && *start != place;
        for above in self.starts.iter().filter(below).filter_map(|start| start.parent()) {
            if list(above, after).is_err_and(|error| is_denied(&error)) && after.is_none() {
                found.closed.insert(closed_above(above).unwrap_or_else(|| above.to_owned()));
            }
        }
        if !self.has_wildcard {
            // With another name it may be seen below any folder; whoever hides it looks for it by its number.
            let has_another =
                |start: &Path| fs::symlink_metadata(start).is_ok_and(|about| has_several_names(&about));
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

/// Each as a path of one name. The last is blocked itself; and a bare `*` would take every link for one.
fn folder_names(wild: &[&str]) -> Vec<PathPattern> {
    let last = wild.iter().rposition(|part| *part != "**").unwrap_or(0);
    let above = wild.get(..last).unwrap_or_default().iter().filter(|part| !matches!(**part, "*" | "**"));
    above.filter_map(|part| PathPattern::parse(&format!("/{part}")).ok()).collect()
}

/// What is in a folder, also where a command has closed it.
fn list(folder: &Path, after: Option<&After<'_>>) -> io::Result<fs::ReadDir> {
    let listed = fs::read_dir(folder);
    match after {
        Some(after) if listed.as_ref().is_err_and(is_denied) && !after.was_closed(folder) => {
            (after.open_up)(folder);
            fs::read_dir(folder)
        }
        _ => listed,
    }
}

/// The outermost folder that keeps us from this path, or from what is in it.
fn closed_above(path: &Path) -> Option<PathBuf> {
    let is_closed =
        |folder: &Path| fs::symlink_metadata(folder.join(".")).is_err_and(|error| is_denied(&error));
    path.ancestors().take_while(|above| is_closed(above)).last().map(Path::to_owned)
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied
}

/// Links at `start` or between it and `folder`, which is none.
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

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("`{}` cannot be searched for blocked paths: {}", path.display(), error.kind())
}

fn too_many(from: &Path) -> String {
    format!(
        "below `{}` lie more than {MOST_LOOKED_AT} entries, too many to look for blocked ones; grant a smaller folder, or block by plain paths",
        from.display()
    )
}

/// The answer of a look that was stopped. Nobody hears it.
pub const NOBODY_WAITS: &str = "nobody waits for what would be found";
const MOST_LOOKED_AT: usize = 200_000;
const MOST_HIDDEN: usize = 1_000;
