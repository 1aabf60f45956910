//! Finds paths that a failed command reported as missing although they exist on the host. `stat` calls are not
//! observed, so the command's own error output is the only hint.
//!
//! Only paths that the author wrote are looked up on the host. Looking up a caller's paths would reveal which files
//! exist.

use std::{fs, path::PathBuf};

use toolgate_sandbox::Attempt;
use toolgate_spec::{
    ArgPart, ArgTemplate,
    model::{CliHandler, SandboxKind},
};

use super::denial::Denial;
use crate::cli::{
    tool::{CliTool, CommandBody, arguments},
    view::hidden_paths::HiddenPaths,
};

/// Paths that a failed command did not find because they were not shown to it.
pub fn missing(tool: &CliTool, hidden_paths: &HiddenPaths, stderr: &str) -> Vec<Denial> {
    // In a container, paths belong to its image.
    let (CommandBody::Manifest(cli), SandboxKind::Process | SandboxKind::None) = (&tool.body, tool.sandbox)
    else {
        return Vec::new();
    };
    let complaints: Vec<&str> = stderr.lines().filter(|line| line.contains(NOT_THERE)).collect();
    if complaints.is_empty() {
        return Vec::new();
    }
    let mut written = author_paths(cli);
    written.sort();
    written.dedup();
    let missing = written.into_iter().filter(|path| complaints.iter().any(|line| names(line, path)));
    missing
        .map(PathBuf::from)
        .filter(|path| hidden_paths.is_not_shown(path) && fs::symlink_metadata(path).is_ok())
        .map(|path| Denial::Path { path, access: Attempt::Read })
        .collect()
}

/// The paths that the author wrote in arguments and variables.
pub fn author_paths(cli: &CliHandler) -> Vec<String> {
    let variables = cli.env.iter().map(|variable| &variable.value);
    arguments(cli).map(|argument| &argument.template).chain(variables).filter_map(author_path).collect()
}

/// `/data`, `--file=/data`, and the constant part of `/data/{name}`.
fn author_path(template: &ArgTemplate) -> Option<String> {
    let (ArgPart::Literal(text), rest) = template.parts().split_first()? else { return None };
    let path = match text.split_once('=') {
        Some((option, path)) if option.starts_with('-') => path,
        _ => text.as_str(),
    };
    let path = if rest.is_empty() { path } else { path.rsplit_once('/')?.0 };
    let path = path.trim_end_matches('/');
    path.starts_with('/').then(|| path.to_owned())
}

/// Whether the line contains the path, or a path below it, as a whole name.
fn names(line: &str, path: &str) -> bool {
    let goes_on = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '.');
    line.match_indices(path).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        let after = line.get(at + path.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(|one| one == '/' || goes_on(one)) && !after.is_some_and(goes_on)
    })
}

/// The C library's text in the locale that commands run with.
pub const NOT_THERE: &str = "No such file or directory";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_authors_part_of_an_element_counts() {
        for (template, path) in [
            ("/srv/data", Some("/srv/data")),
            ("/srv/data/", Some("/srv/data")),
            ("--file=/srv/data", Some("/srv/data")),
            ("/srv/data/{name}", Some("/srv/data")),
            ("/srv/da{name}", Some("/srv")),
            ("/{name}", None),
            ("{name}", None),
            ("{name}/srv", None),
            ("srv/data", None),
            ("/", None),
            ("x=/srv", None),
        ] {
            assert_eq!(author_path(&ArgTemplate::parse(template).unwrap()).as_deref(), path, "{template}");
        }
    }

    #[test]
    fn names_match_as_a_whole() {
        for (line, expect) in [
            ("ls: cannot access '/srv/data': No such", true),
            ("cat: /srv/data/x: No such", true),
            ("error: /srv/data", true),
            ("cat: /srv/database: No such", false),
            ("cat: /srv/data.txt: No such", false),
            ("cat: /other/srv/data: No such", false),
        ] {
            assert_eq!(names(line, "/srv/data"), expect, "{line}");
        }
    }
}
