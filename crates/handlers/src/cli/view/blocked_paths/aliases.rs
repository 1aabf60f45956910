//! What that is blocked could be in sight under another name? A hard link has no path back to the other names of its file:
//! what is blocked and lies elsewhere is looked at, and whoever makes the jail looks for it by its number. A link of a
//! blocked name leads to what is hidden with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use super::{Blocked, Budget, Found, MOST_LOOKED_AT, Pattern, Stop, is_link, is_passed_over, quarantine};
use crate::several_names::{Id, has_several_names, id};

/// Was everything looked at?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Looked {
    Everywhere,
    InPart,
}

impl Blocked {
    /// Adds what a view of these places could show under another name, or says why that cannot be told.
    pub fn add_other_names(&self, places: &[PathBuf], stop: &Stop, found: &mut Found) -> Result<(), String> {
        // A link that was set aside is a command's own doing: what it leads to stays in sight.
        let is_set_aside =
            |path: &PathBuf| quarantine::original(path).is_some() || quarantine::has_lost_its_name(path);
        let links = found.blocked.iter().filter(|path| !is_set_aside(path));
        let targets: Vec<PathBuf> = links.filter_map(|path| behind_link(path, places)).collect();
        found.blocked.extend(targets);
        if !places.iter().any(|place| can_show_another_name(place)) {
            return Ok(());
        }
        found.blocked.extend(self.credentials_elsewhere(places, stop));
        let Elsewhere { plain, apart, around } = self.elsewhere(places);
        // Then everything in sight is looked at in any case, and mostly nothing of it has several names.
        if !around.is_empty() && !show_several_names(places, stop) {
            return Ok(());
        }
        // Little is blocked elsewhere, and hardly any of it has several names. Only then is everything in sight looked at.
        let apart = self.with_other_names(plain, &apart, stop);
        let has_none = apart.as_ref().is_ok_and(BTreeSet::is_empty);
        if around.is_empty() && (has_none || !show_several_names(places, stop)) {
            return Ok(());
        }
        found.blocked.extend(apart?);
        found.blocked.extend(self.with_other_names(BTreeSet::new(), &around, stop)?);
        Ok(())
    }

    /// They are blocked for nearly every tool and can be large, so that one that is too large takes nobody's files away: of
    /// such a one the first entries count.
    fn credentials_elsewhere(&self, places: &[PathBuf], stop: &Stop) -> Vec<PathBuf> {
        let mut several = Vec::new();
        let credentials = self.patterns.iter().filter(|pattern| pattern.holds_credentials);
        for start in credentials.flat_map(|pattern| &pattern.starts).filter(|start| !are_near(start, places))
        {
            let mut files = Vec::new();
            let mut budget = Budget::new(MOST_IN_CREDENTIALS, stop);
            let looked = each_of_several_names(start, &mut budget, &mut |path, _| {
                files.push(path.to_owned());
                ControlFlow::Continue(())
            });
            // Whoever makes the jail looks further into one that is too large for here.
            let has_some = !files.is_empty() || looked == Looked::InPart;
            several.extend(has_some.then(|| start.clone()));
        }
        several
    }

    fn elsewhere(&self, places: &[PathBuf]) -> Elsewhere<'_> {
        let mut elsewhere = Elsewhere::default();
        for pattern in self.patterns.iter().filter(|pattern| !pattern.holds_credentials) {
            for start in pattern.starts.iter().filter(|start| !is_in_every_view(start)) {
                if !pattern.has_wildcard {
                    // The gateway's own files are hidden from every view, and searched for there.
                    let is_elsewhere = !are_near(start, places) && !self.guarded.contains(start);
                    elsewhere.plain.extend(is_elsewhere.then(|| start.clone()));
                    continue;
                }
                if places.iter().any(|place| place.starts_with(start)) {
                    for folder in self.granted_in(start).into_iter().filter(|one| !lies_in(one, places)) {
                        elsewhere.around.entry(folder).or_default().push(pattern);
                    }
                } else if !lies_in(start, places) {
                    elsewhere.apart.entry(start.clone()).or_default().push(pattern);
                }
            }
        }
        elsewhere
    }

    /// The parts of the granted folders that lie at or below this one.
    fn granted_in(&self, start: &Path) -> Vec<PathBuf> {
        let inner = self.roots.iter().filter(|root| root.starts_with(start)).cloned();
        let itself = lies_in(start, &self.roots).then(|| start.to_owned());
        inner.chain(itself).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn with_other_names(
        &self,
        plain: BTreeSet<PathBuf>,
        searched: &BTreeMap<PathBuf, Vec<&Pattern>>,
        stop: &Stop,
    ) -> Result<BTreeSet<PathBuf>, String> {
        let mut elsewhere = Found { blocked: plain.into_iter().collect(), ..Found::default() };
        let mut budget = Budget::new(MOST_LOOKED_AT, stop);
        for (folder, patterns) in searched {
            self.search(folder, patterns, None, &mut budget, &mut elsewhere);
        }
        if let Some(why) = elsewhere.trouble.take() {
            return Err(format!(
                "a file in sight may have several names, and whether one of them is blocked cannot be told: {why}; or use copies instead of hard links"
            ));
        }
        let mut budget = Budget::new(MOST_LOOKED_AT, stop);
        let mut several = BTreeSet::new();
        for path in elsewhere.blocked {
            // Of a folder of the system parts are in every view: its files are named, and the rest of it stays.
            let is_systems = path.starts_with(SETTINGS);
            let mut files = BTreeSet::new();
            let looked = each_of_several_names(&path, &mut budget, &mut |file, _| {
                files.insert(file.to_owned());
                if is_systems { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            let has_some = !files.is_empty();
            if has_some && is_systems {
                several.extend(files);
            } else if has_some {
                several.insert(path);
            } else if looked == Looked::InPart {
                return Err(format!(
                    "a file in sight has several names, and whether `{}` is one of them cannot be told: more than {MOST_LOOKED_AT} entries are blocked; use copies instead of hard links, or block less",
                    path.display()
                ));
            }
        }
        Ok(several)
    }
}

/// Calls `look` for every file with several names at or below this path. Links are not followed: what they lead to has a
/// place of its own.
pub fn each_of_several_names(
    start: &Path,
    budget: &mut Budget<'_>,
    look: &mut dyn FnMut(&Path, Id) -> ControlFlow<()>,
) -> Looked {
    let mut waiting = vec![start.to_owned()];
    let mut looked = Looked::Everywhere;
    while let Some(path) = waiting.pop() {
        if budget.is_stopped() {
            return Looked::InPart;
        }
        let about = match fs::symlink_metadata(&path) {
            Ok(about) => about,
            Err(error) if is_passed_over(error.kind()) => continue,
            Err(_) => {
                looked = Looked::InPart;
                continue;
            }
        };
        if !about.is_dir() {
            if has_several_names(&about) && look(&path, id(&about)).is_break() {
                return looked;
            }
            continue;
        }
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            // What the gateway may not look into, it cannot compare.
            Err(error) if is_passed_over(error.kind()) => continue,
            Err(_) => {
                looked = Looked::InPart;
                continue;
            }
        };
        for entry in entries {
            // What is waiting is looked at all the same.
            if !budget.spend_one() {
                looked = Looked::InPart;
                break;
            }
            match entry {
                Ok(entry) => waiting.push(entry.path()),
                Err(_) => looked = Looked::InPart,
            }
        }
    }
    looked
}

/// Where there is too much to look at, it may.
fn show_several_names(places: &[PathBuf], stop: &Stop) -> bool {
    let mut budget = Budget::new(MOST_LOOKED_AT, stop);
    places.iter().any(|place| {
        let mut has_some = false;
        let looked = each_of_several_names(place, &mut budget, &mut |_, _| {
            has_some = true;
            ControlFlow::Break(())
        });
        has_some || looked == Looked::InPart
    })
}

/// A folder may hold one; a file is one, or not.
fn can_show_another_name(place: &Path) -> bool {
    fs::symlink_metadata(place).is_ok_and(|about| about.is_dir() || has_several_names(&about))
}

/// What a link of a blocked name leads to, where that is in sight and not all that is.
fn behind_link(path: &Path, places: &[PathBuf]) -> Option<PathBuf> {
    let real = is_link(path).then(|| fs::canonicalize(path).ok())??;
    places.iter().any(|place| real != *place && real.starts_with(place)).then_some(real)
}

fn are_near(path: &Path, places: &[PathBuf]) -> bool {
    lies_in(path, places) || places.iter().any(|place| place.starts_with(path))
}

fn lies_in(path: &Path, places: &[PathBuf]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

/// What is blocked and out of sight.
#[derive(Debug, Default)]
struct Elsewhere<'p> {
    plain: BTreeSet<PathBuf>,
    /// Folders to search that have nothing to do with the view.
    apart: BTreeMap<PathBuf, Vec<&'p Pattern>>,
    /// Folders around the view: a pattern that begins above it counts in everything granted, as for path arguments.
    around: BTreeMap<PathBuf, Vec<&'p Pattern>>,
}

/// What is blocked in there is hidden from every command, with its other names, or nobody has it under another name.
fn is_in_every_view(path: &Path) -> bool {
    IN_EVERY_VIEW.iter().any(|folder| path.starts_with(folder))
}

const IN_EVERY_VIEW: [&str; 10] =
    ["/proc", "/sys", "/dev", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// The system's own, of which programs need a few.
const SETTINGS: &str = "/etc";

/// Of each place of credentials.
const MOST_IN_CREDENTIALS: usize = 2_000;

#[cfg(test)]
mod tests {
    use toolgate_spec::PathPattern;

    use super::*;
    use crate::{
        cli::view::blocked_paths::NOBODY_WAITS,
        files::{FileCaps, FileGrants, FileRights},
    };

    #[test]
    fn beyond_the_bound_what_was_listed_is_looked_at_and_the_rest_is_not_said_to_be() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(folder.path().join(name), "x").unwrap();
            fs::hard_link(folder.path().join(name), folder.path().join(format!("{name}2"))).unwrap();
        }
        let count = |most: usize| {
            let stop = Stop::default();
            let (mut budget, mut files) = (Budget::new(most, &stop), 0);
            let looked = each_of_several_names(folder.path(), &mut budget, &mut |_, _| {
                files += 1;
                ControlFlow::Continue(())
            });
            (looked, files)
        };
        assert_eq!(count(6), (Looked::Everywhere, 6));
        assert_eq!(count(5), (Looked::InPart, 5));
        assert_eq!(count(0), (Looked::InPart, 0));
    }

    #[test]
    fn a_look_that_nobody_waits_for_ends_and_does_not_say_that_nothing_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(root.join("src")).unwrap();
        fs::write(root.join("src/.env"), "x").unwrap();
        fs::hard_link(root.join("src/.env"), root.join("src/twin")).unwrap();
        let grants = FileGrants {
            workspace: root.clone(),
            read_roots: Vec::new(),
            pattern_workspace: root.clone(),
            home: root.join("home"),
            rights: FileRights::Read,
            allowed: vec![PathPattern::parse("/").unwrap()],
            blocked: vec![PathPattern::parse("$WORKSPACE/**/.env").unwrap()],
            own: Vec::new(),
            turns: root.join("state/turns"),
            caps: FileCaps::default(),
        };
        let blocked = Blocked::new(Some(&grants), &[]).unwrap();
        let stopped = Stop::default();
        drop(stopped.waiting());
        for (stop, seen, trouble) in [(Stop::default(), 1, None), (stopped, 0, Some(NOBODY_WAITS))] {
            let found = blocked.look(std::slice::from_ref(&root), None, &stop);
            assert_eq!((found.blocked.len(), found.trouble.as_deref()), (seen, trouble));
            let mut files = 0;
            each_of_several_names(&root, &mut Budget::new(9, &stop), &mut |_, _| {
                files += 1;
                ControlFlow::Continue(())
            });
            assert_eq!(files, 2 * seen);
        }
    }
}
