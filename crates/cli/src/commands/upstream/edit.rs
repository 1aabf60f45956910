//! Edits the list `upstreams` of a configuration file, and leaves every other line as it is.

use std::fmt::Write as _;

use serde_json::Value;

use crate::args::UpstreamAdd;

/// A new element of the list, as lines without indentation.
pub(super) fn entry(new: &UpstreamAdd) -> Vec<String> {
    let text = |text: &str| Value::from(text).to_string();
    let mut lines = vec![format!("- name: {}", text(&new.name)), format!("  source: {}", text(&new.source))];
    let paths = |paths: &[std::path::PathBuf]| -> Vec<String> {
        paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    };
    let lists = [
        ("env", new.env.clone()),
        ("read", paths(&new.read)),
        ("write", paths(&new.write)),
        ("hosts", new.hosts.clone()),
    ];
    for (key, values) in lists {
        if !values.is_empty() {
            let values: Vec<String> = values.iter().map(|value| text(value)).collect();
            lines.push(format!("  {key}: [{}]", values.join(", ")));
        }
    }
    if let Some(prefix) = &new.prefix {
        lines.push(format!("  prefix: {}", text(prefix)));
    }
    lines
}

/// The file with another element at the end of the list.
pub(super) fn added(file: &str, entry: &[String]) -> String {
    let lines: Vec<&str> = file.lines().collect();
    let Some(start) = lines.iter().position(|line| is_list_key(line)) else {
        let mut edited = file.trim_end().to_owned();
        edited.push_str("\nupstreams:\n");
        push(&mut edited, entry, "  ");
        return edited;
    };
    let end = end_of_list(&lines, start);
    let items = lines.get(start + 1..end).unwrap_or_default();
    let indent = items.iter().find_map(|line| indent_of_item(line)).unwrap_or("  ");
    let mut edited = String::new();
    for line in lines.get(..start).unwrap_or_default() {
        let _ = writeln!(edited, "{line}");
    }
    edited.push_str("upstreams:\n");
    for line in items {
        let _ = writeln!(edited, "{line}");
    }
    push(&mut edited, entry, indent);
    for line in lines.get(end..).unwrap_or_default() {
        let _ = writeln!(edited, "{line}");
    }
    edited
}

/// The file without the element of this name. `None` if there is no line `- name: NAME`.
pub(super) fn removed(file: &str, name: &str) -> Option<String> {
    let lines: Vec<&str> = file.lines().collect();
    let list = lines.iter().position(|line| is_list_key(line))?;
    let end = end_of_list(&lines, list);
    let names = |line: &&str| {
        let value =
            line.trim_start().strip_prefix("- name:").map(|value| value.trim().trim_matches(['"', '\'']));
        value == Some(name)
    };
    let first = list + 1 + lines.get(list + 1..end)?.iter().position(names)?;
    let indent = indent_of_item(lines.get(first)?)?;
    let rest = lines.get(first + 1..end)?;
    let behind =
        first + 1 + rest.iter().position(|line| indent_of_item(line) == Some(indent)).unwrap_or(rest.len());
    let is_only =
        lines.get(list + 1..end)?.iter().filter(|line| indent_of_item(line) == Some(indent)).count() == 1;
    let mut edited = String::new();
    for (number, line) in lines.iter().enumerate() {
        let is_removed = (first..behind).contains(&number) || (is_only && number == list);
        if !is_removed {
            let _ = writeln!(edited, "{line}");
        }
    }
    Some(edited)
}

fn push(edited: &mut String, entry: &[String], indent: &str) {
    for line in entry {
        let _ = writeln!(edited, "{indent}{line}");
    }
}

fn is_list_key(line: &str) -> bool {
    line.strip_prefix("upstreams:")
        .is_some_and(|rest| matches!(rest.trim(), "" | "[]") || rest.trim().starts_with('#'))
}

/// The first line after the list: one that begins at the margin and is not an element, a comment or empty.
fn end_of_list(lines: &[&str], start: usize) -> usize {
    let rest = lines.get(start + 1..).unwrap_or_default();
    let is_outside = |line: &&str| !line.trim().is_empty() && !line.starts_with([' ', '-', '#', '\t']);
    let end = start + 1 + rest.iter().position(is_outside).unwrap_or(rest.len());
    // Empty lines and comments before the next key belong to that key.
    let belongs = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let last = lines.get(start + 1..end).unwrap_or_default().iter().rposition(belongs);
    last.map_or(start + 1, |last| start + 2 + last)
}

fn indent_of_item(line: &str) -> Option<&str> {
    let body = line.trim_start();
    body.starts_with("- ").then(|| line.get(..line.len() - body.len()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry_of(name: &str) -> Vec<String> {
        let (env, read, write, hosts) = Default::default();
        entry(&UpstreamAdd {
            name: name.to_owned(),
            source: "node x.js".to_owned(),
            env,
            read,
            write,
            hosts,
            prefix: None,
        })
    }

    #[test]
    fn element_is_added_and_removed_without_other_changes() {
        for (before, after) in [
            ("version: 1\n", "version: 1\nupstreams:\n  - name: \"a\"\n    source: \"node x.js\"\n"),
            (
                "version: 1\nupstreams:\n- name: old\n  source: x\n\n# log\nlog:\n  level: info\n",
                "version: 1\nupstreams:\n- name: old\n  source: x\n- name: \"a\"\n  source: \"node x.js\"\n\n# log\nlog:\n  level: info\n",
            ),
        ] {
            let edited = added(before, &entry_of("a"));
            assert_eq!(edited, after);
            assert_eq!(removed(&edited, "a").unwrap(), before);
        }
        assert_eq!(removed("version: 1\n", "a"), None);
    }
}
