//! May a caller's value be glued to a short option? Of most programs nobody knows whether the letter takes a value; where
//! it takes none, the value goes on with the group: in `-s{x}` a `K/path` is `curl -s -K /path`.

use std::{collections::BTreeSet, slice};

use serde_json::Value;
use toolgate_spec::{
    ArgPart,
    model::{Argument, ArgumentGroup, CliHandler, ToolSpec},
    project,
};

use super::ITEM;

/// For programs of which nothing is known. A value passes that cannot be letters, and one that the author vouches for.
pub fn check(cli: &CliHandler, spec: &ToolSpec, paths: &BTreeSet<String>) -> Result<(), String> {
    let input = project::input_schema(spec).map_err(|error| error.to_string())?;
    let statics = spec.effective_statics();
    for (list, argument) in cli.args.iter().flat_map(with_list) {
        let [ArgPart::Literal(start), ArgPart::Variable(_), ..] = argument.template.parts() else {
            continue;
        };
        if argument.may_be_option || !is_short_group(start) {
            continue;
        }
        // All of them: after `5`, a digit or two, the group goes on.
        for name in argument.template.names() {
            let is_operators = statics.iter().any(|variable| variable.name == *name);
            let of_list = list.filter(|_| name == ITEM).map(String::as_str);
            let property = of_list.unwrap_or(name);
            let schema = input.get("properties").and_then(|properties| properties.get(property));
            let schema = if of_list.is_some() { schema.and_then(|list| list.get("items")) } else { schema };
            // A path becomes the one that was found, and begins with `/`.
            if !is_operators && !paths.contains(property) && !schema.is_some_and(is_bounded) {
                return Err(format!(
                    "`{}` may take what follows `{start}` for more options, so `{}` lets the caller choose them; write two arguments, bound `{property}` by `enum` or a pattern of digits, or say `allowOption: true`",
                    cli.command,
                    argument.template.text()
                ));
            }
        }
    }
    Ok(())
}

/// The arguments of a group, each with the list that its `{item}` stands for.
fn with_list(group: &ArgumentGroup) -> impl Iterator<Item = (Option<&String>, &Argument)> {
    let (list, arguments) = match group {
        ArgumentGroup::One(one) => (None, slice::from_ref(one)),
        ArgumentGroup::When { args, .. } => (None, args.as_slice()),
        ArgumentGroup::Each { param, args } => (Some(param), args.as_slice()),
    };
    arguments.iter().map(move |argument| (list, argument))
}

fn is_short_group(literal: &str) -> bool {
    let letters = literal.strip_prefix('-').unwrap_or_default();
    !letters.is_empty() && letters.chars().all(|letter| letter.is_ascii_alphanumeric())
}

/// Are there no values but the author's own, or none with a letter in them? A number is written without an exponent.
fn is_bounded(schema: &Value) -> bool {
    let is_plain =
        matches!(schema.get("type").and_then(Value::as_str), Some("integer" | "number" | "boolean"));
    let is_listed = schema.get("enum").is_some() || schema.get("const").is_some();
    is_plain || is_listed || schema.get("pattern").and_then(Value::as_str).is_some_and(takes_digits_only)
}

/// Anchored at both ends, and nothing in between but digits and how often they come. Alternatives and other classes are
/// not understood here, and count as letters.
fn takes_digits_only(pattern: &str) -> bool {
    let Some(inside) = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')) else {
        return false;
    };
    let inside =
        ["[0-9]", "[1-9]", "\\d"].iter().fold(inside.to_owned(), |rest, class| rest.replace(class, "0"));
    inside.chars().all(|sign| sign.is_ascii_digit() || "{},+*?()".contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_of_digits_lets_nothing_else_through() {
        for pattern in ["^[0-9]+$", "^\\d{1,3}$", "^[1-9][0-9]*$", "^5$"] {
            assert!(takes_digits_only(pattern), "{pattern}");
        }
        for pattern in ["[0-9]+", "^[0-9]+", "^1|2$", "^.$", "^[!-~]$", "^\\D$", "^[^0-9]$", "^[0-9]+[a-z]$"]
        {
            assert!(!takes_digits_only(pattern), "{pattern}");
        }
    }

    #[test]
    fn a_short_group_is_one_dash_and_letters() {
        assert!(is_short_group("-s") && is_short_group("-sS") && is_short_group("-4"));
        assert!(
            !is_short_group("-") && !is_short_group("--s") && !is_short_group("-o=") && !is_short_group("s")
        );
    }
}
