//! Was it a blocked path that a command stumbled over? Then it did what it is for, as far as it may.

use std::{
    cell::LazyCell,
    collections::BTreeSet,
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    ViewPlan,
    blocked_paths::{Blocked, each_of_several_names},
    budget::{Budget, Stop},
};
use crate::{
    cli::run::launch::Order,
    several_names::{Id, has_several_names, id},
};

/// What was shown to one run and hidden from it, by the names that the command would call it.
#[derive(Debug)]
pub struct Unseen {
    blocked: Arc<Blocked>,
    hidden: Vec<PathBuf>,
    shown: Vec<PathBuf>,
    cwd: PathBuf,
}

impl Unseen {
    pub fn of(order: &Order, plan: &ViewPlan) -> Self {
        let shown = order.binds.iter().map(|bind| bind.path.clone()).collect();
        Self { blocked: plan.blocked(), hidden: order.hidden.clone(), shown, cwd: order.cwd.clone() }
    }

    /// Does it lie in nothing that the command was given? Apart from that it saw what every jail has.
    pub fn is_not_shown(&self, path: &Path) -> bool {
        !self.shown.iter().any(|shown| path.starts_with(shown))
    }

    /// Is it blocked for the tool? Also where nothing around it is shown, and so nothing had to be hidden.
    pub fn covers(&self, path: &Path) -> bool {
        self.hidden.iter().any(|hidden| path.starts_with(hidden)) || self.blocked.blocks(path)
    }

    /// Did the command complain of nothing else? A command that complains without end did.
    pub fn is_all_of(&self, complaints: &str) -> bool {
        let lines = complaints.lines().filter(|line| !line.trim().is_empty());
        let lines: Vec<&str> = lines.take(MOST_COMPLAINTS + 1).collect();
        if lines.is_empty() || lines.len() > MOST_COMPLAINTS {
            return false;
        }
        let hidden = self.quoted_names();
        let names_one = |line: &str| hidden.iter().any(|quoted| line.contains(quoted));
        let several = LazyCell::new(|| self.files_of_several_names());
        let names_another = |line: &str| {
            // The jail covers a hidden file under its other names, too.
            let about = named(line).and_then(|name| fs::symlink_metadata(self.cwd.join(name)).ok());
            about.is_some_and(|about| has_several_names(&about) && several.contains(&id(&about)))
        };
        lines.into_iter().all(|line| line.contains(DENIED) && (names_one(line) || names_another(line)))
    }

    /// As far as they can be looked at: what is not found is a failure that is told.
    fn files_of_several_names(&self) -> BTreeSet<Id> {
        let mut files = BTreeSet::new();
        let stop = Stop::default();
        let mut budget = Budget::new(MOST_COMPARED, &stop);
        for hidden in &self.hidden {
            each_of_several_names(hidden, &mut budget, &mut |_, file| {
                files.insert(file);
                ControlFlow::Continue(())
            });
        }
        files
    }

    /// What is hidden, as programs quote a name: between blank and colon, or in quotation marks.
    fn quoted_names(&self) -> Vec<String> {
        let below = |hidden: &PathBuf| hidden.strip_prefix(&self.cwd).map(Path::to_owned).ok();
        let names = self.hidden.iter().flat_map(|hidden| {
            let relative = below(hidden);
            let dotted = relative.as_ref().map(|relative| Path::new(".").join(relative));
            [Some(hidden.clone()), relative, dotted].into_iter().flatten()
        });
        let quoted = names.filter(|name| !name.as_os_str().is_empty()).flat_map(|name| {
            let name = name.display();
            [format!(" {name}:"), format!("'{name}'"), format!("\u{2018}{name}\u{2019}")]
        });
        quoted.collect()
    }
}

/// In `grep: name: Permission denied`, or with the name in quotation marks.
fn named(line: &str) -> Option<&str> {
    let said = line.rsplit_once(DENIED)?.0.strip_suffix(": ")?;
    let quoted = |open: char, close: char| {
        said.split_once(open).and_then(|(_, rest)| rest.rsplit_once(close)).map(|(name, _)| name)
    };
    quoted('\'', '\'')
        .or_else(|| quoted('\u{2018}', '\u{2019}'))
        .or_else(|| said.split_once(": ").map(|(_, name)| name))
}

/// The words of the C library in the language that commands are given.
pub const DENIED: &str = "Permission denied";
const MOST_COMPARED: usize = 20_000;
/// As many as paths can be hidden. Each line is compared with each of them.
const MOST_COMPLAINTS: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing_blocked() -> Arc<Blocked> {
        Arc::new(Blocked::new(None, &[]).unwrap())
    }

    #[track_caller]
    fn check(complaints: &str, expect: bool) {
        let unseen = Unseen {
            blocked: nothing_blocked(),
            hidden: vec!["/w/.env".into(), "/w/a".into()],
            shown: vec!["/w".into()],
            cwd: "/w".into(),
        };
        assert_eq!(unseen.is_all_of(complaints), expect, "{complaints}");
    }

    #[test]
    fn only_complaints_of_what_is_hidden_are_passed_over() {
        check("grep: /w/.env: Permission denied\n", true);
        check("grep: ./.env: Permission denied\ngrep: a: Permission denied\n", true);
        check("find: \u{2018}./a\u{2019}: Permission denied\n", true);
        check("ls: cannot open directory '/w/a': Permission denied\n", true);
        check("", false);
        check("grep: /w/other: Permission denied\n", false);
        check("grep: /w/.env: Permission denied\ngrep: /w/b: Permission denied\n", false);
        check("grep: /w/.env: Input/output error\n", false);
        check("grep: abc: Permission denied\n", false);
    }

    #[test]
    fn who_complains_without_end_is_not_compared_to_the_end() {
        check(&"grep: a: Permission denied\n".repeat(MOST_COMPLAINTS), true);
        check(&"grep: a: Permission denied\n".repeat(MOST_COMPLAINTS + 1), false);
        check(&"grep: a: Permission denied\n\n".repeat(MOST_COMPLAINTS), true);
    }

    #[test]
    fn a_hidden_file_is_known_by_its_other_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("w/docs")).unwrap();
        fs::create_dir(at("vault")).unwrap();
        fs::write(at("vault/key"), "x").unwrap();
        fs::hard_link(at("vault/key"), at("w/docs/innocent.md")).unwrap();
        fs::write(at("w/docs/other.md"), "x").unwrap();
        fs::hard_link(at("w/docs/other.md"), at("w/docs/another.md")).unwrap();
        let unseen = Unseen {
            blocked: nothing_blocked(),
            hidden: vec![at("vault")],
            shown: vec![at("w")],
            cwd: at("w"),
        };
        let absolute = at("w/docs/innocent.md").display().to_string();
        for name in ["docs/innocent.md", "./docs/innocent.md", &absolute] {
            assert!(unseen.is_all_of(&format!("grep: {name}: Permission denied\n")), "{name}");
            assert!(
                unseen.is_all_of(&format!("find: \u{2018}{name}\u{2019}: Permission denied\n")),
                "{name}"
            );
            assert!(unseen.is_all_of(&format!("ls: cannot open '{name}': Permission denied\n")), "{name}");
        }
        for line in ["grep: docs/other.md: Permission denied", "grep: docs/innocent.md: Is a directory"] {
            assert!(!unseen.is_all_of(line), "{line}");
        }
    }
}
