//! Selects the arguments that are matched against danger patterns: those that name paths, URLs or commands.
//!
//! The patterns describe paths, URLs and commands. They must not match a search text that contains `/etc/passwd`. Texts
//! that a command receives in another way, such as the value of an option, are in `Survey::built`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use toolgate_spec::{
    ArgTemplate, FieldPattern, FieldStep,
    model::{Argument, ArgumentGroup, Body, CliHandler, Handler, ToolSpec},
};

/// The arguments that danger patterns apply to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DangerScope {
    /// The document does not say what any argument is for, or the arguments are passed to another program unchanged.
    All,
    Only(BTreeSet<String>),
}

impl DangerScope {
    pub fn of(spec: &ToolSpec) -> Self {
        let mut names = BTreeSet::new();
        match &spec.body {
            Body::JavaScript { .. } => {}
            Body::Handler(Handler::Cli(command)) => names.extend(command_arguments(command)),
            // The receiver decides what an argument is for.
            Body::Handler(_) => return Self::All,
        }
        let touches = &spec.governance.touches;
        for pattern in touches.read.iter().chain(&touches.write).chain(&touches.connect) {
            match first_name(pattern) {
                Some(name) => drop(names.insert(name.to_owned())),
                None => return Self::All,
            }
        }
        let properties = spec.governance.input.as_ref().and_then(|input| input.get("properties"));
        for (name, schema) in properties.and_then(Value::as_object).into_iter().flatten() {
            if has_format(schema) || names_a_path(name) {
                names.insert(name.clone());
            }
        }
        let by_name = spec.params.iter().map(|param| &param.name).filter(|name| names_a_path(name));
        names.extend(by_name.cloned());
        if names.is_empty() { Self::All } else { Self::Only(names) }
    }

    /// The arguments in scope.
    pub fn of_arguments(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        match self {
            Self::All => arguments.clone(),
            Self::Only(names) => arguments
                .iter()
                .filter(|(name, _)| names.contains(*name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }
    }
}

/// The arguments of a command line that are operands, or that follow a part of a path or URL. Only the handler knows
/// the values of options, and can tell a path from a search text such as `--regexp={text}`.
fn command_arguments(command: &CliHandler) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for group in &command.args {
        let (arguments, list) = match group {
            ArgumentGroup::One(argument) => (std::slice::from_ref(argument), None),
            ArgumentGroup::When { args, .. } => (args.as_slice(), None),
            ArgumentGroup::Each { args, param } => (args.as_slice(), Some(param)),
        };
        for Argument { template, .. } in arguments {
            if !is_option_value(template) {
                // Inside `each`, `item` is an entry of the list.
                names.extend(template.names().map(str::to_owned));
                names.extend(list.cloned());
            }
        }
    }
    // A shell runs what it reads.
    if command.command.ends_with("sh") {
        names.extend(command.stdin.iter().flat_map(ArgTemplate::names).map(str::to_owned));
    }
    names
}

/// `--name={value}` or `-n{value}`, without a path or URL before the value.
fn is_option_value(template: &ArgTemplate) -> bool {
    let literal = template.text().split('{').next().unwrap_or_default();
    literal.starts_with('-') && literal.len() > 1 && !literal.contains('/')
}

/// The argument that a pattern is about. `None` if it may be about any.
fn first_name(pattern: &FieldPattern) -> Option<&str> {
    match pattern.steps().next() {
        Some(FieldStep::Name(name)) => Some(name),
        _ => None,
    }
}

/// Whether the schema, at any depth, declares a path, URL or host.
fn has_format(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            let format = members.get("format").and_then(Value::as_str);
            matches!(format, Some("path" | "uri" | "url" | "hostname" | "uri-reference" | "iri"))
                // References are not followed, so they count as a path.
                || members.contains_key("$ref")
                || members.values().any(has_format)
        }
        Value::Array(items) => items.iter().any(has_format),
        _ => false,
    }
}

/// Whether a word of the name means a path, URL or command.
fn names_a_path(name: &str) -> bool {
    words(name).iter().any(|word| {
        let word = word.strip_suffix('s').unwrap_or(word);
        PATH_WORDS.contains(&word)
    })
}

/// `targetDir` and `target_dir` both have the words `target` and `dir`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for character in name.chars() {
        if character.is_uppercase() || !character.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(last) = words.last_mut().filter(|_| character.is_alphanumeric()) {
            last.extend(character.to_lowercase());
        }
    }
    words
}

/// Without the plural `s`.
const PATH_WORDS: [&str; 29] = [
    "path",
    "file",
    "filename",
    "filepath",
    "folder",
    "dir",
    "directory",
    "directorie",
    "root",
    "cwd",
    "workspace",
    "url",
    "uri",
    "link",
    "href",
    "host",
    "hostname",
    "domain",
    "endpoint",
    "addres",
    "command",
    "cmd",
    "script",
    "shell",
    "source",
    "src",
    "target",
    "destination",
    "dest",
];

#[cfg(test)]
mod tests {
    use toolgate_spec::{Format, check_text};

    use super::*;

    #[track_caller]
    fn check(document: &str, expect: &str) {
        let check = check_text(document, Format::Yaml).tools.remove(0);
        let spec = check.spec.unwrap_or_else(|| panic!("{:?}", check.findings));
        let shown = match DangerScope::of(&spec) {
            DangerScope::All => "all".to_owned(),
            DangerScope::Only(names) => names.into_iter().collect::<Vec<_>>().join(" "),
        };
        assert_eq!(shown, expect, "{document}");
    }

    fn command(params: &str, handler: &str) -> String {
        let params: Vec<String> = params
            .split(' ')
            .map(|name| {
                format!("{{name: {name}, type: STRING, required: true, description: a text, testValue: a}}")
            })
            .collect();
        let params = params.join(", ");
        format!(
            "{{name: t, description: 'Does it. Returns text.', classification: read, params: [{params}], handler: {{cli: {handler}}}}}"
        )
    }

    #[test]
    fn operands_are_in_scope_and_option_values_are_not() {
        check(
            &command("text folder", "{command: grep, args: ['--regexp={text}', '--', '{folder}']}"),
            "folder",
        );
        check(&command("x", "{command: cat, args: ['--', '{x}']}"), "x");
        check(&command("x y", "{command: curl, args: ['--url=https://{x}/', '--data={y}']}"), "x");
        check(include_str!("../../../catalog/commands/bash.yaml"), "command host");
        check(include_str!("../../../catalog/commands/search_code.yaml"), "folder");
        check(include_str!("../../../catalog/commands/read_file.yaml"), "path");
    }

    #[test]
    fn javascript_arguments_are_in_scope_by_name_and_touches() {
        let js = |params: &str, more: &str| {
            let params: Vec<String> = params
                .split(' ')
                .map(|name| {
                    format!(
                        "{{name: {name}, type: STRING, required: true, description: a text, testValue: a}}"
                    )
                })
                .collect();
            format!(
                "{{name: t, code: return 1, codeType: Javascript, params: [{}]{more}}}",
                params.join(", ")
            )
        };
        check(&js("path content", ""), "path");
        check(&js("outFile text", ""), "outFile");
        check(&js("one two", ", x-toolgate-touches: {read: [.one]}"), "one");
        // Nothing tells what they are for.
        check(&js("one two", ""), "all");
    }
}
