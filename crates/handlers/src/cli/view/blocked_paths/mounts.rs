//! Blocked paths that the host has mounted a second time inside the view. Their second path is not blocked, and
//! neither symlinks nor inode numbers reveal it.

use std::path::{Path, PathBuf};

use toolgate_sandbox::MountTable;
use toolgate_spec::model::SandboxKind;

use toolgate_gate::StopFlag;

use super::{BlockedFindings, BlockedPaths, BlockedPattern, EntryBudget, MOST_SEARCHED};

/// The places that a command sees, and the mounts of the host.
#[derive(Debug)]
struct VisibleMounts<'a> {
    mounts: &'a MountTable,
    places: &'a [PathBuf],
    sandbox: SandboxKind,
}

impl BlockedPaths {
    /// Adds the blocked paths that a view of these places would show through mounts, or explains why that cannot be
    /// checked.
    pub fn add_mounted(
        &self,
        places: &[PathBuf],
        sandbox: SandboxKind,
        stop: &StopFlag,
        found: &mut BlockedFindings,
    ) -> Result<(), String> {
        // Only these places can show it.
        if places.is_empty() {
            return Ok(());
        }
        let mounts = MountTable::read().map_err(|error| {
            format!("cannot check for blocked files mounted in its directories: {error}; mount `/proc`")
        })?;
        self.add_seen(&VisibleMounts { mounts: &mounts, places, sandbox }, stop, found)
    }

    fn add_seen(
        &self,
        sight: &VisibleMounts<'_>,
        stop: &StopFlag,
        found: &mut BlockedFindings,
    ) -> Result<(), String> {
        // Most hosts have no such mounts, and the table is long.
        if !sight.mounts.shows_anything_twice() {
            return Ok(());
        }
        let plain = self.patterns.iter().filter(|pattern| !pattern.has_wildcard);
        let plain = plain.flat_map(|pattern| &pattern.starts).chain(&self.guarded);
        found.blocked.extend(plain.flat_map(|path| sight.of(path)).map(|(name, _)| name));
        let mut budget = EntryBudget::new(MOST_SEARCHED, stop);
        for pattern in self.patterns.iter().filter(|pattern| pattern.has_wildcard) {
            for start in &pattern.starts {
                for (_, seen) in sight.of(start) {
                    let names = sight.mounts.other_names(&seen).into_iter();
                    for known in names.filter(|name| name.starts_with(start)) {
                        self.add_mounted_names(pattern, &known, &seen, &mut budget, found)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A pattern matches names below its prefix, so the search runs there.
    fn add_mounted_names(
        &self,
        pattern: &BlockedPattern,
        known: &Path,
        seen: &Path,
        budget: &mut EntryBudget<'_>,
        found: &mut BlockedFindings,
    ) -> Result<(), String> {
        if self.covers(pattern, known) {
            found.blocked.push(seen.to_owned());
            return Ok(());
        }
        let mut there = BlockedFindings::default();
        self.search(known, &[pattern], None, budget, &mut there);
        if let Some(why) = there.trouble {
            return Err(format!(
                "`{}` is also mounted at `{}`, and it cannot be checked what is blocked there: {why}",
                known.display(),
                seen.display()
            ));
        }
        // A directory that is closed under one path is closed under the other, and its owner can open it.
        let hidden = there.blocked.iter().chain(&there.closed);
        let below = hidden.filter_map(|path| path.strip_prefix(known).ok());
        found.blocked.extend(below.map(|below| join(seen, below)));
        Ok(())
    }
}

impl VisibleMounts<'_> {
    /// The other visible paths of a path or of its contents, and the visible part of each.
    fn of(&self, path: &Path) -> Vec<(PathBuf, PathBuf)> {
        let mut seen = Vec::new();
        for name in self.mounts.seen_outside(path) {
            for place in self.places {
                if place.starts_with(&name) {
                    seen.push((name.clone(), place.clone()));
                } else if name.starts_with(place) && self.shows(place, &name) {
                    seen.push((name.clone(), name.clone()));
                }
            }
        }
        seen
    }

    /// A container does not see mounts below a bind, so nothing can be hidden there.
    fn shows(&self, place: &Path, name: &Path) -> bool {
        self.sandbox != SandboxKind::Container || self.mounts.lie_in_one_mount(place, name)
    }
}

/// Avoids a trailing slash if `below` is empty.
fn join(path: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { path.to_owned() } else { path.join(below) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use toolgate_spec::PathPattern;

    use super::*;
    use crate::files::{FileCaps, FileGrants, FileRights};

    /// `secret` is mounted on `work/m`, and one of its files on `work/key`. All paths are relative to the directory
    /// around both.
    #[track_caller]
    fn check_in(sandbox: SandboxKind, blocked: &str, place: &str, expect: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for file in ["secret/app/.env", "secret/app/note", "work/src/main"] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let at = root.display();
        let mounts = MountTable::parse(&format!(
            "22 1 254:0 / / rw - ext4 /dev/sda1 rw\n\
             23 22 254:0 {at}/secret {at}/work/m rw - ext4 /dev/sda1 rw\n\
             24 22 254:0 {at}/secret/app/.env {at}/work/key rw - ext4 /dev/sda1 rw\n"
        ));
        let grants = FileGrants {
            workspace: root.join("work"),
            read_roots: Vec::new(),
            pattern_workspace: root.join("work"),
            home: root.join("home"),
            rights: FileRights::Read,
            allowed: vec![PathPattern::parse("/").unwrap()],
            blocked: vec![PathPattern::parse(&format!("{at}/{blocked}")).unwrap()],
            own: Vec::new(),
            locks: root.join("state/turns"),
            caps: FileCaps::default(),
        };
        let blocked = BlockedPaths::new(Some(&grants), &[]).unwrap();
        let sight = VisibleMounts { mounts: &mounts, places: &[root.join(place)], sandbox };
        let mut found = BlockedFindings::default();
        blocked.add_seen(&sight, &StopFlag::default(), &mut found).unwrap();
        found.blocked.sort();
        let expect: Vec<PathBuf> = expect.iter().map(|path| root.join(path)).collect();
        assert_eq!(found.blocked, expect);
    }

    #[track_caller]
    fn check(blocked: &str, place: &str, expect: &[&str]) {
        check_in(SandboxKind::Process, blocked, place, expect);
    }

    #[test]
    fn path_blocked_by_name_is_hidden_where_it_is_mounted() {
        check("secret", "work", &["work/key", "work/m"]);
        check("secret/app", "work", &["work/key", "work/m/app"]);
        check("secret/app/note", "work", &["work/m/app/note"]);
        check("secret", "work/m/app", &["work/m"]);
        check("secret", "work/src", &[]);
        check("secret/none", "work/src", &[]);
    }

    #[test]
    fn path_blocked_by_pattern_is_hidden_where_it_is_mounted() {
        check("secret/**/.env", "work", &["work/key", "work/m/app/.env"]);
        check("secret/**/.env", "work/m/app", &["work/m/app/.env"]);
        check("secret/**/.env", "work/m/app/.env", &["work/m/app/.env"]);
        check("secret/**/.env", "work/src", &[]);
        check("secret/*", "work/m/app", &["work/m/app"]);
    }

    #[test]
    fn container_hides_only_what_its_bind_shows() {
        check_in(SandboxKind::Container, "secret", "work", &[]);
        check_in(SandboxKind::Container, "secret/**/.env", "work", &[]);
        check_in(SandboxKind::Container, "secret/app", "work/m", &["work/m/app"]);
        check_in(SandboxKind::Container, "secret/**/.env", "work/m", &["work/m/app/.env"]);
    }
}
