//! Where in sight has the host mounted something blocked a second time? There it has a name that is not blocked, and neither a
//! link nor a number of names tells that it is the same.

use std::path::{Path, PathBuf};

use toolgate_sandbox::MountTable;
use toolgate_spec::model::SandboxKind;

use super::{Blocked, Budget, Found, MOST_LOOKED_AT, Pattern, Stop};

/// What a command is shown, and by which mounts.
#[derive(Debug)]
struct Sight<'a> {
    mounts: &'a MountTable,
    places: &'a [PathBuf],
    sandbox: SandboxKind,
}

impl Blocked {
    /// Adds what a view of these places would show of it, or says why that cannot be told.
    pub fn add_mounted(
        &self,
        places: &[PathBuf],
        sandbox: SandboxKind,
        stop: &Stop,
        found: &mut Found,
    ) -> Result<(), String> {
        // Nothing but these places can show it.
        if places.is_empty() {
            return Ok(());
        }
        let mounts = MountTable::read().map_err(|error| {
            format!(
                "whether something blocked is mounted in its folders cannot be told: {error}; mount `/proc`"
            )
        })?;
        self.add_seen(&Sight { mounts: &mounts, places, sandbox }, stop, found)
    }

    fn add_seen(&self, sight: &Sight<'_>, stop: &Stop, found: &mut Found) -> Result<(), String> {
        // Nearly everywhere, and a table is long.
        if !sight.mounts.shows_anything_twice() {
            return Ok(());
        }
        let plain = self.patterns.iter().filter(|pattern| !pattern.has_wildcard);
        let plain = plain.flat_map(|pattern| &pattern.starts).chain(&self.guarded);
        found.blocked.extend(plain.flat_map(|path| sight.of(path)).map(|(name, _)| name));
        let mut budget = Budget::new(MOST_LOOKED_AT, stop);
        for pattern in self.patterns.iter().filter(|pattern| pattern.has_wildcard) {
            for start in &pattern.starts {
                for (_, seen) in sight.of(start) {
                    let names = sight.mounts.other_names(&seen).into_iter();
                    for known in names.filter(|name| name.starts_with(start)) {
                        self.add_twins(pattern, &known, &seen, &mut budget, found)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A pattern knows the names below its own beginning, so they are looked for there.
    fn add_twins(
        &self,
        pattern: &Pattern,
        known: &Path,
        seen: &Path,
        budget: &mut Budget<'_>,
        found: &mut Found,
    ) -> Result<(), String> {
        if self.covers(pattern, known) {
            found.blocked.push(seen.to_owned());
            return Ok(());
        }
        let mut there = Found::default();
        self.search(known, &[pattern], None, budget, &mut there);
        if let Some(why) = there.trouble {
            return Err(format!(
                "`{}` is mounted a second time as `{}`, and what of it is blocked cannot be told: {why}",
                known.display(),
                seen.display()
            ));
        }
        // What is closed under one name is closed under the other, and its owner can open it.
        let hidden = there.blocked.iter().chain(&there.closed);
        let below = hidden.filter_map(|path| path.strip_prefix(known).ok());
        found.blocked.extend(below.map(|below| join(seen, below)));
        Ok(())
    }
}

impl Sight<'_> {
    /// Every other name of a path, or of something in it, that is in sight; and the part of it that is.
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

    /// A container sees nothing that is mounted below a bind, and where it sees nothing, nothing can be covered.
    fn shows(&self, place: &Path, name: &Path) -> bool {
        self.sandbox != SandboxKind::Container || self.mounts.lie_in_one_mount(place, name)
    }
}

/// Without a slash at the end where there is nothing to add.
fn join(path: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { path.to_owned() } else { path.join(below) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use toolgate_spec::PathPattern;

    use super::*;
    use crate::files::{FileCaps, FileGrants, FileRights};

    /// `secret` is mounted on `work/m`, and one file of it on `work/key`. `blocked` and what is to be hidden are told from
    /// the folder around both.
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
            turns: root.join("state/turns"),
            caps: FileCaps::default(),
        };
        let blocked = Blocked::new(Some(&grants), &[]).unwrap();
        let sight = Sight { mounts: &mounts, places: &[root.join(place)], sandbox };
        let mut found = Found::default();
        blocked.add_seen(&sight, &Stop::default(), &mut found).unwrap();
        found.blocked.sort();
        let expect: Vec<PathBuf> = expect.iter().map(|path| root.join(path)).collect();
        assert_eq!(found.blocked, expect);
    }

    #[track_caller]
    fn check(blocked: &str, place: &str, expect: &[&str]) {
        check_in(SandboxKind::Process, blocked, place, expect);
    }

    #[test]
    fn what_is_blocked_by_name_is_hidden_where_it_is_mounted() {
        check("secret", "work", &["work/key", "work/m"]);
        check("secret/app", "work", &["work/key", "work/m/app"]);
        check("secret/app/note", "work", &["work/m/app/note"]);
        check("secret", "work/m/app", &["work/m"]);
        check("secret", "work/src", &[]);
        check("secret/none", "work/src", &[]);
    }

    #[test]
    fn what_is_blocked_by_a_pattern_is_hidden_where_it_is_mounted() {
        check("secret/**/.env", "work", &["work/key", "work/m/app/.env"]);
        check("secret/**/.env", "work/m/app", &["work/m/app/.env"]);
        check("secret/**/.env", "work/m/app/.env", &["work/m/app/.env"]);
        check("secret/**/.env", "work/src", &[]);
        check("secret/*", "work/m/app", &["work/m/app"]);
    }

    #[test]
    fn in_a_container_only_what_its_bind_shows() {
        check_in(SandboxKind::Container, "secret", "work", &[]);
        check_in(SandboxKind::Container, "secret/**/.env", "work", &[]);
        check_in(SandboxKind::Container, "secret/app", "work/m", &["work/m/app"]);
        check_in(SandboxKind::Container, "secret/**/.env", "work/m", &["work/m/app/.env"]);
    }
}
