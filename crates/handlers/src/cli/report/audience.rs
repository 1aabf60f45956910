//! Did the caller name this path? Whoever may name any path, and is told of those that are there, learns what the host has.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};
use toolgate_spec::ArgTemplate;

use super::missing_paths::written_paths;
use crate::cli::{
    run::launch::Order,
    tool::{self, CliTool},
};

/// Who reads what is said of a failure?
pub enum Hearer {
    /// The author of a draft, who runs it.
    Author,
    Caller(Given),
}

/// What a command was given by its caller, and where the author says that it belongs.
pub struct Given {
    texts: Vec<String>,
    written: Vec<PathBuf>,
}

impl Given {
    pub fn of(tool: &CliTool, order: &Order, arguments: &Map<String, Value>) -> Self {
        let cli = tool.body.written();
        let elements = tool::arguments(cli).map(|argument| &argument.template);
        let authors: Vec<&str> = elements.filter(|one| is_fixed(one)).map(ArgTemplate::text).collect();
        let line = order.argv.iter().skip(1).filter(|element| !authors.contains(&element.as_str())).cloned();
        let filled = |name: &str| cli.env.iter().any(|one| one.name == name && !is_fixed(&one.value));
        let variables = order.env.iter().filter(|(name, _)| filled(name));
        let variables = variables.map(|(_, value)| value.to_string_lossy().into_owned());
        let stdin = cli.stdin.iter().filter(|template| !is_fixed(template));
        let stdin = stdin.map(|_| String::from_utf8_lossy(&order.stdin).into_owned());
        let mut texts: Vec<String> = line.chain(variables).chain(stdin).collect();
        // An element that reads like one of the author's may be the caller's.
        arguments.values().for_each(|value| add_texts(value, &mut texts));
        Self { texts, written: written_paths(cli).into_iter().map(PathBuf::from).collect() }
    }

    /// Is a part of it in what the caller gave? Of a path that the author wrote only what comes after it is the caller's.
    pub fn names(&self, path: &Path) -> bool {
        let rests = self.written.iter().filter_map(|written| path.strip_prefix(written).ok());
        let rest = rests.min_by_key(|rest| rest.components().count()).unwrap_or(path);
        rest.components().any(|part| match part {
            Component::Normal(name) => {
                let name = name.to_string_lossy();
                self.texts.iter().any(|text| text.contains(&*name) || climbs(text))
            }
            _ => false,
        })
    }
}

fn is_fixed(template: &ArgTemplate) -> bool {
    template.names().next().is_none()
}

fn add_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, texts)),
        Value::Object(members) => members.values().for_each(|member| add_texts(member, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Who goes up from a folder names whatever lies above it.
fn climbs(text: &str) -> bool {
    let ends_name = |character: char| !character.is_alphanumeric() && !matches!(character, '.' | '-' | '_');
    text.split(ends_name).any(|name| name == "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(texts: &[&str], written: &[&str]) -> Given {
        Given {
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            written: written.iter().map(PathBuf::from).collect(),
        }
    }

    #[test]
    fn a_part_of_a_path_is_enough() {
        for (texts, path, expect) in [
            (&["/home/ann/.bashrc"][..], "/home/ann/.bashrc", true),
            (&["--file=/home/ann/.bashrc,x"], "/home/ann/.bashrc", true),
            (&["/home/ann"], "/home/ann/.git/HEAD", true),
            (&["x", "first\n.bashrc\n"], "/home/ann/.bashrc", true),
            (&["../.."], "/home/ann/.git", true),
            (&["--from=.."], "/home/ann/.git", true),
            (&["main..topic", "1...2"], "/home/ann/.git", false),
            (&["hello"], "/etc/tool.conf", false),
            (&[], "/etc/tool.conf", false),
        ] {
            assert_eq!(given(texts, &[]).names(Path::new(path)), expect, "{texts:?} {path}");
        }
    }

    #[test]
    fn of_the_authors_path_the_rest_is_the_callers() {
        for (texts, path, expect) in [
            (&["/data/x"][..], "/data", false),
            (&["/data/x"], "/data/x", true),
            (&["/data/x"], "/data/index", false),
            (&["/data/x"], "/srv/data", true),
            (&["/data/.."], "/data", false),
            (&["/data/.."], "/data/index", true),
        ] {
            assert_eq!(given(texts, &["/data"]).names(Path::new(path)), expect, "{texts:?} {path}");
        }
    }
}
