//! Does a command miss a path that is there? Nobody is told of `stat`, so that a program which gives up after it says so itself
//! at best.
//!
//! Only paths that the author of the manifest wrote are looked for on the host. A caller's own would make of every failing command
//! an answer to whether a file exists outside.

use std::{fs, path::PathBuf};

use toolgate_spec::{
    ArgPart, ArgTemplate,
    model::{CliHandler, SandboxKind},
};

use crate::cli::{
    run::launch::{Access, Refused},
    tool::{CliTool, CommandBody, arguments},
    view::hidden_paths::Unseen,
};

/// What a failed command said it did not find, and was not shown.
pub fn missed(tool: &CliTool, unseen: &Unseen, stderr: &str) -> Vec<Refused> {
    // In a container paths are those of its image.
    let (CommandBody::Manifest(cli), SandboxKind::Process | SandboxKind::None) = (&tool.body, tool.sandbox)
    else {
        return Vec::new();
    };
    let complaints: Vec<&str> = stderr.lines().filter(|line| line.contains(NOT_THERE)).collect();
    if complaints.is_empty() {
        return Vec::new();
    }
    let mut written = written_paths(cli);
    written.sort();
    written.dedup();
    let missed = written.into_iter().filter(|path| complaints.iter().any(|line| names(line, path)));
    missed
        .map(PathBuf::from)
        .filter(|path| unseen.is_not_shown(path) && fs::symlink_metadata(path).is_ok())
        .map(|path| Refused::Path { path, access: Access::Read })
        .collect()
}

/// In arguments and variables.
pub fn written_paths(cli: &CliHandler) -> Vec<String> {
    let variables = cli.env.iter().map(|variable| &variable.value);
    arguments(cli).map(|argument| &argument.template).chain(variables).filter_map(written_path).collect()
}

/// `/data`, `--file=/data`, and of `/data/{name}` what does not depend on the caller.
fn written_path(template: &ArgTemplate) -> Option<String> {
    let (ArgPart::Literal(text), rest) = template.parts().split_first()? else { return None };
    let path = match text.split_once('=') {
        Some((option, path)) if option.starts_with('-') => path,
        _ => text.as_str(),
    };
    let path = if rest.is_empty() { path } else { path.rsplit_once('/')?.0 };
    let path = path.trim_end_matches('/');
    path.starts_with('/').then(|| path.to_owned())
}

/// The path itself or something below it, and not only the end or the beginning of another name.
fn names(line: &str, path: &str) -> bool {
    let goes_on = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '.');
    line.match_indices(path).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        let after = line.get(at + path.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(|one| one == '/' || goes_on(one)) && !after.is_some_and(goes_on)
    })
}

/// The words of the C library in the language that commands are given.
pub const NOT_THERE: &str = "No such file or directory";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authors_part_of_an_element_is_what_counts() {
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
            assert_eq!(written_path(&ArgTemplate::parse(template).unwrap()).as_deref(), path, "{template}");
        }
    }

    #[test]
    fn a_name_is_the_whole_name() {
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
