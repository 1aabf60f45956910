//! Was it a blocked path that a command stumbled over? Then it did what it is for, as far as it may.

use std::path::{Path, PathBuf};

use super::launch::Order;

/// What was hidden from one run, by the names that the command would call it.
#[derive(Debug)]
pub struct Unseen {
    hidden: Vec<PathBuf>,
    cwd: PathBuf,
}

impl Unseen {
    pub fn of(order: &Order) -> Self {
        Self { hidden: order.hidden.clone(), cwd: order.cwd.clone() }
    }

    pub fn covers(&self, path: &Path) -> bool {
        self.hidden.iter().any(|hidden| path.starts_with(hidden))
    }

    /// Did the command complain of nothing else?
    pub fn is_all_of(&self, complaints: &str) -> bool {
        let mut lines = complaints.lines().filter(|line| !line.trim().is_empty()).peekable();
        lines.peek().is_some() && lines.all(|line| line.contains(DENIED) && self.names_one(line))
    }

    /// As programs quote a name: between blank and colon, or in quotation marks.
    fn names_one(&self, line: &str) -> bool {
        let below = |hidden: &PathBuf| hidden.strip_prefix(&self.cwd).map(Path::to_owned).ok();
        let names = self.hidden.iter().flat_map(|hidden| {
            let relative = below(hidden);
            let dotted = relative.as_ref().map(|relative| Path::new(".").join(relative));
            [Some(hidden.clone()), relative, dotted].into_iter().flatten()
        });
        names.filter(|name| !name.as_os_str().is_empty()).any(|name| {
            let name = name.display();
            let quoted = [format!(" {name}:"), format!("'{name}'"), format!("\u{2018}{name}\u{2019}")];
            quoted.iter().any(|quoted| line.contains(quoted))
        })
    }
}

/// The words of the C library in the language that commands are given.
const DENIED: &str = "Permission denied";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(complaints: &str, expect: bool) {
        let unseen = Unseen { hidden: vec!["/w/.env".into(), "/w/a".into()], cwd: "/w".into() };
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
}
