//! Does a caller choose the words that a command searches for?

use std::collections::BTreeSet;

use toolgate_spec::{
    ArgPart, ArgTemplate,
    model::{Argument, ArgumentGroup, CliHandler, ToolSpec},
};

use crate::cli::line;

/// On the command line, in a variable, on standard input, or in a file that the caller names for them. The names of other paths
/// say where to search, and not for what.
pub fn is_by_callers(cli: &CliHandler, spec: &ToolSpec, paths: &BTreeSet<String>) -> bool {
    let statics = spec.effective_statics();
    let is_callers = |name: &str| statics.iter().all(|own| own.name != name);
    let is_word = |name: &str| is_callers(name) && !paths.contains(name);
    let elsewhere = cli.env.iter().map(|variable| &variable.value).chain(&cli.stdin);
    let mut before = None;
    elsewhere.flat_map(ArgTemplate::names).any(is_word)
        || cli.args.iter().flat_map(elements).any(|(argument, list)| {
            let option = match argument.template.parts() {
                [ArgPart::Literal(start), ArgPart::Variable(_), ..] => Some(start.as_str()),
                _ => before,
            };
            before = match argument.template.parts() {
                [ArgPart::Literal(literal)] => Some(literal.as_str()),
                _ => None,
            };
            let real = |name| list.filter(|_| name == line::ITEM).unwrap_or(name);
            let mut names = argument.template.names().map(real);
            match option.filter(|option| takes_file_of_words(option)) {
                Some(_) => names.any(is_callers),
                None => names.any(is_word),
            }
        })
}

/// With the list that `{item}` is one of.
fn elements(group: &ArgumentGroup) -> Vec<(&Argument, Option<&str>)> {
    match group {
        ArgumentGroup::One(one) => vec![(one, None)],
        ArgumentGroup::When { args, .. } => args.iter().map(|one| (one, None)).collect(),
        ArgumentGroup::Each { param, args } => args.iter().map(|one| (one, Some(param.as_str()))).collect(),
    }
}

/// `-f`, `-rnf`, `--file=`, also shortened.
fn takes_file_of_words(option: &str) -> bool {
    let Some(letters) = option.strip_prefix('-') else { return false };
    match letters.strip_prefix('-') {
        Some(word) => word.len() > 1 && "file".starts_with(word.trim_end_matches('=')),
        None => letters.contains('f'),
    }
}
