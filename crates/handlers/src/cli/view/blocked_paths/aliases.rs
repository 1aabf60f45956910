//! Blocked files that are visible under another name. A hard link has no path to the other names of its file, so
//! blocked files elsewhere are collected, and the jail searches for them by inode. The target of a blocked symlink is
//! hidden with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use toolgate_gate::StopFlag;

use super::{
    BlockedFindings, BlockedPaths, BlockedPattern, EntryBudget, MOST_SEARCHED, is_link, is_skipped,
    quarantine,
};
use crate::hard_links::{FileNumber, SearchCoverage, file_number, is_hard_linked};

impl BlockedPaths {
    /// Adds what a view of these places could show under another name, or explains why that cannot be checked.
    pub fn add_aliases(
        &self,
        places: &[PathBuf],
        stop: &StopFlag,
        found: &mut BlockedFindings,
    ) -> Result<(), String> {
        // A quarantined symlink was created by a command; its target stays visible.
        let is_set_aside =
            |path: &PathBuf| quarantine::original(path).is_some() || quarantine::has_lost_its_name(path);
        let links = found.blocked.iter().filter(|path| !is_set_aside(path));
        let targets: Vec<PathBuf> = links.filter_map(|path| behind_link(path, places)).collect();
        found.blocked.extend(targets);
        if !places.iter().any(|place| can_show_hard_link(place)) {
            return Ok(());
        }
        found.blocked.extend(self.credentials_elsewhere(places, stop));
        let BlockedElsewhere { plain, apart, around } = self.elsewhere(places);
        // In this case everything visible is searched anyway, and usually contains no hard link.
        if !around.is_empty() && !show_hard_links(places, stop) {
            return Ok(());
        }
        // Few blocked files lie elsewhere, and few are hard-linked. Only in that case is everything visible searched.
        let apart = self.hard_linked_in(plain, &apart, stop);
        let has_none = apart.as_ref().is_ok_and(BTreeSet::is_empty);
        if around.is_empty() && (has_none || !show_hard_links(places, stop)) {
            return Ok(());
        }
        found.blocked.extend(apart?);
        found.blocked.extend(self.hard_linked_in(BTreeSet::new(), &around, stop)?);
        Ok(())
    }

    /// Directories of credentials are blocked for nearly every tool and can be large. From a large one only the first
    /// entries are checked, so that it does not make other tools unusable.
    fn credentials_elsewhere(&self, places: &[PathBuf], stop: &StopFlag) -> Vec<PathBuf> {
        let mut several = Vec::new();
        let credentials = self.patterns.iter().filter(|pattern| pattern.holds_credentials);
        for start in credentials.flat_map(|pattern| &pattern.starts).filter(|start| !are_near(start, places))
        {
            let mut files = Vec::new();
            let mut budget = EntryBudget::new(MOST_CREDENTIAL_FILES, stop);
            let looked = for_each_hard_link(start, &mut budget, &mut |path, _| {
                files.push(path.to_owned());
                ControlFlow::Continue(())
            });
            // The jail searches larger directories further.
            let has_some = !files.is_empty() || looked == SearchCoverage::Partial;
            several.extend(has_some.then(|| start.clone()));
        }
        several
    }

    fn elsewhere(&self, places: &[PathBuf]) -> BlockedElsewhere<'_> {
        let mut elsewhere = BlockedElsewhere::default();
        for pattern in self.patterns.iter().filter(|pattern| !pattern.holds_credentials) {
            for start in pattern.starts.iter().filter(|start| !is_in_every_view(start)) {
                if !pattern.has_wildcard {
                    // The gateway's files are hidden from every view and searched for there.
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

    /// The parts of the granted directories at or below this one.
    fn granted_in(&self, start: &Path) -> Vec<PathBuf> {
        let inner = self.roots.iter().filter(|root| root.starts_with(start)).cloned();
        let itself = lies_in(start, &self.roots).then(|| start.to_owned());
        inner.chain(itself).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn hard_linked_in(
        &self,
        plain: BTreeSet<PathBuf>,
        searched: &BTreeMap<PathBuf, Vec<&BlockedPattern>>,
        stop: &StopFlag,
    ) -> Result<BTreeSet<PathBuf>, String> {
        let mut elsewhere =
            BlockedFindings { blocked: plain.into_iter().collect(), ..BlockedFindings::default() };
        let mut budget = EntryBudget::new(MOST_SEARCHED, stop);
        for (folder, patterns) in searched {
            self.search(folder, patterns, None, &mut budget, &mut elsewhere);
        }
        if let Some(why) = elsewhere.trouble.take() {
            return Err(format!(
                "a visible file may be a hard link, and it cannot be checked whether another of its names is blocked: {why}; or use copies instead of hard links"
            ));
        }
        let mut budget = EntryBudget::new(MOST_SEARCHED, stop);
        let mut several = BTreeSet::new();
        for path in elsewhere.blocked {
            // Parts of a system directory are in every view, so its files are listed and the rest stays visible.
            let is_systems = path.starts_with(SETTINGS);
            let mut files = BTreeSet::new();
            let looked = for_each_hard_link(&path, &mut budget, &mut |file, _| {
                files.insert(file.to_owned());
                if is_systems { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            let has_some = !files.is_empty();
            if has_some && is_systems {
                several.extend(files);
            } else if has_some {
                several.insert(path);
            } else if looked == SearchCoverage::Partial {
                return Err(format!(
                    "a visible file is a hard link, and it cannot be checked whether `{}` is another name of it: more than {MOST_SEARCHED} entries are blocked; use copies instead of hard links, or block less",
                    path.display()
                ));
            }
        }
        Ok(several)
    }
}

/// Calls `look` for every hard-linked file at or below this path. Does not follow symlinks.
pub fn for_each_hard_link(
    start: &Path,
    budget: &mut EntryBudget<'_>,
    look: &mut dyn FnMut(&Path, FileNumber) -> ControlFlow<()>,
) -> SearchCoverage {
    let mut waiting = vec![start.to_owned()];
    let mut looked = SearchCoverage::Complete;
    while let Some(path) = waiting.pop() {
        if budget.is_stopped() {
            return SearchCoverage::Partial;
        }
        let about = match fs::symlink_metadata(&path) {
            Ok(about) => about,
            Err(error) if is_skipped(error.kind()) => continue,
            Err(_) => {
                looked = SearchCoverage::Partial;
                continue;
            }
        };
        if !about.is_dir() {
            if is_hard_linked(&about) && look(&path, file_number(&about)).is_break() {
                return looked;
            }
            continue;
        }
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            // Directories that the gateway cannot read cannot be compared.
            Err(error) if is_skipped(error.kind()) => continue,
            Err(_) => {
                looked = SearchCoverage::Partial;
                continue;
            }
        };
        for entry in entries {
            // Entries already queued are still checked.
            if !budget.spend_one() {
                looked = SearchCoverage::Partial;
                break;
            }
            match entry {
                Ok(entry) => waiting.push(entry.path()),
                Err(_) => looked = SearchCoverage::Partial,
            }
        }
    }
    looked
}

/// If there are too many entries to check, a hard link is assumed.
fn show_hard_links(places: &[PathBuf], stop: &StopFlag) -> bool {
    let mut budget = EntryBudget::new(MOST_SEARCHED, stop);
    places.iter().any(|place| {
        let mut has_some = false;
        let looked = for_each_hard_link(place, &mut budget, &mut |_, _| {
            has_some = true;
            ControlFlow::Break(())
        });
        has_some || looked == SearchCoverage::Partial
    })
}

/// Whether the place is a hard-linked file, or a directory that may contain one.
fn can_show_hard_link(place: &Path) -> bool {
    fs::symlink_metadata(place).is_ok_and(|about| about.is_dir() || is_hard_linked(&about))
}

/// The target of a blocked symlink, if it is visible and not the whole view.
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

/// Blocked paths that are not visible.
#[derive(Debug, Default)]
struct BlockedElsewhere<'p> {
    plain: BTreeSet<PathBuf>,
    /// Directories to search outside the view.
    apart: BTreeMap<PathBuf, Vec<&'p BlockedPattern>>,
    /// Directories around the view. A pattern that begins above the view applies to everything granted, as for path
    /// arguments.
    around: BTreeMap<PathBuf, Vec<&'p BlockedPattern>>,
}

/// Blocked paths there are hidden from every command with all their names, or have no other names.
fn is_in_every_view(path: &Path) -> bool {
    IN_EVERY_VIEW.iter().any(|folder| path.starts_with(folder))
}

const IN_EVERY_VIEW: [&str; 10] =
    ["/proc", "/sys", "/dev", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// System settings, of which programs need some.
const SETTINGS: &str = "/etc";

/// Per directory of credentials.
const MOST_CREDENTIAL_FILES: usize = 2_000;

#[cfg(test)]
mod tests {
    use toolgate_spec::PathPattern;

    use super::*;
    use crate::{
        cli::view::blocked_paths::CHECK_STOPPED,
        files::{FileCaps, FileGrants, FileRights},
    };

    #[test]
    fn search_beyond_the_limit_is_reported_as_partial() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(folder.path().join(name), "x").unwrap();
            fs::hard_link(folder.path().join(name), folder.path().join(format!("{name}2"))).unwrap();
        }
        let count = |most: usize| {
            let stop = StopFlag::default();
            let (mut budget, mut files) = (EntryBudget::new(most, &stop), 0);
            let looked = for_each_hard_link(folder.path(), &mut budget, &mut |_, _| {
                files += 1;
                ControlFlow::Continue(())
            });
            (looked, files)
        };
        assert_eq!(count(6), (SearchCoverage::Complete, 6));
        assert_eq!(count(5), (SearchCoverage::Partial, 5));
        assert_eq!(count(0), (SearchCoverage::Partial, 0));
    }

    #[test]
    fn stopped_search_is_not_reported_as_empty() {
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
            locks: root.join("state/turns"),
            caps: FileCaps::default(),
        };
        let blocked = BlockedPaths::new(Some(&grants), &[]).unwrap();
        let stopped = StopFlag::default();
        drop(stopped.stop_on_drop());
        for (stop, seen, trouble) in [(StopFlag::default(), 1, None), (stopped, 0, Some(CHECK_STOPPED))] {
            let found = blocked.look(std::slice::from_ref(&root), None, &stop);
            assert_eq!((found.blocked.len(), found.trouble.as_deref()), (seen, trouble));
            let mut files = 0;
            for_each_hard_link(&root, &mut EntryBudget::new(9, &stop), &mut |_, _| {
                files += 1;
                ControlFlow::Continue(())
            });
            assert_eq!(files, 2 * seen);
        }
    }
}
