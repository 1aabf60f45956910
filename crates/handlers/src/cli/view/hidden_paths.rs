//! Recognises errors that only concern hidden paths. Such a command did its work as far as it was allowed.

use std::{
    cell::LazyCell,
    collections::BTreeSet,
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolgate_gate::StopFlag;

use super::{
    ViewPlan,
    blocked_paths::{BlockedPaths, for_each_hard_link},
    budget::EntryBudget,
};
use crate::{
    cli::run::order::CommandOrder,
    hard_links::{FileNumber, file_number, is_hard_linked},
};

/// The visible and hidden paths of one run, under the names that the command uses.
#[derive(Debug)]
pub struct HiddenPaths {
    blocked: Arc<BlockedPaths>,
    hidden: Vec<PathBuf>,
    shown: Vec<PathBuf>,
    cwd: PathBuf,
}

impl HiddenPaths {
    pub fn of(order: &CommandOrder, plan: &ViewPlan) -> Self {
        let shown = order.view.binds.iter().map(|bind| bind.at.clone()).collect();
        Self { blocked: plan.blocked(), hidden: order.view.hidden.clone(), shown, cwd: order.cwd.clone() }
    }

    /// Whether it is outside of everything granted to the command.
    pub fn is_not_shown(&self, path: &Path) -> bool {
        !self.shown.iter().any(|shown| path.starts_with(shown))
    }

    /// Whether it is blocked for the tool, also if its surroundings are not visible.
    pub fn covers(&self, path: &Path) -> bool {
        self.hidden.iter().any(|hidden| path.starts_with(hidden)) || self.blocked.blocks(path)
    }

    /// Whether all error lines concern hidden paths. False if there are too many lines to compare.
    pub fn covers_all_errors(&self, complaints: &str) -> bool {
        let lines = complaints.lines().filter(|line| !line.trim().is_empty());
        let lines: Vec<&str> = lines.take(MOST_COMPLAINTS + 1).collect();
        if lines.is_empty() || lines.len() > MOST_COMPLAINTS {
            return false;
        }
        let hidden = self.quoted_names();
        let names_one = |line: &str| hidden.iter().any(|quoted| line.contains(quoted));
        let several = LazyCell::new(|| self.hard_linked_files());
        let names_another = |line: &str| {
            // The jail also hides the other names of a hidden file.
            let about = named(line).and_then(|name| fs::symlink_metadata(self.cwd.join(name)).ok());
            about.is_some_and(|about| is_hard_linked(&about) && several.contains(&file_number(&about)))
        };
        lines.into_iter().all(|line| line.contains(DENIED) && (names_one(line) || names_another(line)))
    }

    /// Up to a limit. A missed file leads to an error message, not to a success.
    fn hard_linked_files(&self) -> BTreeSet<FileNumber> {
        let mut files = BTreeSet::new();
        let stop = StopFlag::default();
        let mut budget = EntryBudget::new(MOST_COMPARED, &stop);
        for hidden in &self.hidden {
            for_each_hard_link(hidden, &mut budget, &mut |_, file| {
                files.insert(file);
                ControlFlow::Continue(())
            });
        }
        files
    }

    /// The hidden paths as programs quote them: between a space and a colon, or in quotation marks.
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

/// The name in `grep: name: Permission denied`, also quoted.
fn named(line: &str) -> Option<&str> {
    let said = line.rsplit_once(DENIED)?.0.strip_suffix(": ")?;
    let quoted = |open: char, close: char| {
        said.split_once(open).and_then(|(_, rest)| rest.rsplit_once(close)).map(|(name, _)| name)
    };
    quoted('\'', '\'')
        .or_else(|| quoted('\u{2018}', '\u{2019}'))
        .or_else(|| said.split_once(": ").map(|(_, name)| name))
}

/// The C library's text in the locale that commands run with.
pub const DENIED: &str = "Permission denied";
const MOST_COMPARED: usize = 20_000;
/// Matches the number of paths that can be hidden. Each line is compared with each path.
const MOST_COMPLAINTS: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing_blocked() -> Arc<BlockedPaths> {
        Arc::new(BlockedPaths::new(None, &[]).unwrap())
    }

    #[track_caller]
    fn check(complaints: &str, expect: bool) {
        let hidden_paths = HiddenPaths {
            blocked: nothing_blocked(),
            hidden: vec!["/w/.env".into(), "/w/a".into()],
            shown: vec!["/w".into()],
            cwd: "/w".into(),
        };
        assert_eq!(hidden_paths.covers_all_errors(complaints), expect, "{complaints}");
    }

    #[test]
    fn only_errors_about_hidden_paths_are_ignored() {
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
    fn too_many_error_lines_are_not_compared() {
        check(&"grep: a: Permission denied\n".repeat(MOST_COMPLAINTS), true);
        check(&"grep: a: Permission denied\n".repeat(MOST_COMPLAINTS + 1), false);
        check(&"grep: a: Permission denied\n\n".repeat(MOST_COMPLAINTS), true);
    }

    #[test]
    fn hidden_file_is_recognised_under_other_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("w/docs")).unwrap();
        fs::create_dir(at("vault")).unwrap();
        fs::write(at("vault/key"), "x").unwrap();
        fs::hard_link(at("vault/key"), at("w/docs/innocent.md")).unwrap();
        fs::write(at("w/docs/other.md"), "x").unwrap();
        fs::hard_link(at("w/docs/other.md"), at("w/docs/another.md")).unwrap();
        let hidden_paths = HiddenPaths {
            blocked: nothing_blocked(),
            hidden: vec![at("vault")],
            shown: vec![at("w")],
            cwd: at("w"),
        };
        let absolute = at("w/docs/innocent.md").display().to_string();
        for name in ["docs/innocent.md", "./docs/innocent.md", &absolute] {
            assert!(hidden_paths.covers_all_errors(&format!("grep: {name}: Permission denied\n")), "{name}");
            assert!(
                hidden_paths.covers_all_errors(&format!("find: \u{2018}{name}\u{2019}: Permission denied\n")),
                "{name}"
            );
            assert!(
                hidden_paths.covers_all_errors(&format!("ls: cannot open '{name}': Permission denied\n")),
                "{name}"
            );
        }
        for line in ["grep: docs/other.md: Permission denied", "grep: docs/innocent.md: Is a directory"] {
            assert!(!hidden_paths.covers_all_errors(line), "{line}");
        }
    }
}
