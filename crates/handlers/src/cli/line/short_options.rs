//! Rejects caller values attached to short options. For most programs it is unknown whether the letter takes a value.
//! If not, the value continues the group: in `-s{x}`, the value `K/path` means `curl -s -K /path`.

use std::{collections::BTreeSet, slice};

use serde_json::Value;
use toolgate_spec::{
    ArgPart,
    model::{Argument, ArgumentGroup, CliHandler, ToolSpec},
    project,
};

use super::ITEM;

/// Used for unknown programs. Accepts values that cannot contain letters, and values that the author explicitly
/// allows.
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
        // Checks all variables: after one digit the group would continue.
        for name in argument.template.names() {
            let is_operators = statics.iter().any(|variable| variable.name == *name);
            let of_list = list.filter(|_| name == ITEM).map(String::as_str);
            let property = of_list.unwrap_or(name);
            let schema = input.get("properties").and_then(|properties| properties.get(property));
            let schema = if of_list.is_some() { schema.and_then(|list| list.get("items")) } else { schema };
            // A path is replaced by its real path, which begins with `/`.
            if !is_operators && !paths.contains(property) && !schema.is_some_and(is_bounded) {
                return Err(format!(
                    "`{}` may read the text after `{start}` as more options, so `{}` lets the caller choose them; write two arguments, bound `{property}` by `enum` or a pattern of digits, or set `allowOption: true`",
                    cli.command,
                    argument.template.text()
                ));
            }
        }
    }
    Ok(())
}

/// The arguments of a group, each with the list that its `{item}` iterates over.
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

/// Whether all possible values are listed by the author or contain no letters. Numbers are written without exponent.
fn is_bounded(schema: &Value) -> bool {
    let is_plain =
        matches!(schema.get("type").and_then(Value::as_str), Some("integer" | "number" | "boolean"));
    let is_listed = schema.get("enum").is_some() || schema.get("const").is_some();
    is_plain || is_listed || schema.get("pattern").and_then(Value::as_str).is_some_and(takes_digits_only)
}

/// Accepts a pattern anchored at both ends that contains only digits and repetition. Alternatives and other classes
/// are not analysed, and count as letters.
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
    fn digit_pattern_accepts_only_digits() {
        for pattern in ["^[0-9]+$", "^\\d{1,3}$", "^[1-9][0-9]*$", "^5$"] {
            assert!(takes_digits_only(pattern), "{pattern}");
        }
        for pattern in ["[0-9]+", "^[0-9]+", "^1|2$", "^.$", "^[!-~]$", "^\\D$", "^[^0-9]$", "^[0-9]+[a-z]$"]
        {
            assert!(!takes_digits_only(pattern), "{pattern}");
        }
    }

    #[test]
    fn short_group_is_one_dash_and_letters() {
        assert!(is_short_group("-s") && is_short_group("-sS") && is_short_group("-4"));
        assert!(
            !is_short_group("-") && !is_short_group("--s") && !is_short_group("-o=") && !is_short_group("s")
        );
    }
}
