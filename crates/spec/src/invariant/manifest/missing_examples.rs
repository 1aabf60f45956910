//! Finds argument rules without examples: each needs a value that it accepts and one that it rejects.

use std::collections::BTreeSet;

use serde_json::Value;

use super::report::ManifestReport;
use crate::{
    Pointer,
    model::{ArgumentGroup, Body, CliHandler, Handler, ToolSpec},
};

/// A rule without examples, and the missing part.
pub struct MissingExamples {
    pub at: Pointer,
    pub problem: &'static str,
    pub remedy: &'static str,
}

/// Rejects such rules for command arguments, because only the rule limits what a caller can put on the command line.
pub(super) fn check(spec: &ToolSpec, input: &Value, report: &mut ManifestReport<'_>) {
    let Body::Handler(Handler::Cli(cli)) = &spec.body else { return };
    for MissingExamples { at, problem, remedy } in of(input, |name| is_on_command_line(cli, name)) {
        report.add(&at, problem, remedy);
    }
}

/// Whether the command line depends on this parameter.
pub fn is_on_command_line(cli: &CliHandler, name: &str) -> bool {
    cli.args.iter().any(|group| match group {
        ArgumentGroup::One(one) => one.template.names().any(|used| used == name),
        ArgumentGroup::When { param, args } | ArgumentGroup::Each { param, args } => {
            param == name || args.iter().flat_map(|one| one.template.names()).any(|used| used == name)
        }
    })
}

/// The rules for these properties that lack examples, each reported once.
pub fn of(input: &Value, is_meant: impl Fn(&str) -> bool) -> Vec<MissingExamples> {
    let properties = input.get("properties").and_then(Value::as_object).into_iter().flatten();
    let at = Pointer::root().key("input");
    let mut left: Vec<(Pointer, &Value, Sense)> = properties
        .filter(|(name, _)| is_meant(name))
        .map(|(name, schema)| (at.key("properties").key(name), schema, Sense::Kept))
        .collect();
    let (mut known, mut found) = (BTreeSet::new(), Vec::new());
    while let Some((place, schema, sense)) = left.pop() {
        if !known.insert(place.clone()) {
            continue;
        }
        found.extend(look(schema, sense).map(|problem| MissingExamples {
            at: place.key("pattern"),
            problem,
            remedy: sense.remedy(),
        }));
        left.extend(inside(&place, schema, sense));
        if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix(DEFINED))
            && let Some(definition) = input.get("$defs").and_then(|all| all.get(name))
        {
            left.push((at.key("$defs").key(name), definition, sense));
        }
    }
    found
}

/// The effect of a pattern on a matching value.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Sense {
    Kept,
    /// Inside `not` it is rejected.
    Turned,
}

impl Sense {
    const fn turned(self) -> Self {
        match self {
            Self::Kept => Self::Turned,
            Self::Turned => Self::Kept,
        }
    }

    const fn remedy(self) -> &'static str {
        match self {
            Self::Kept => "add `examples` that it must accept and `x-misses` that it must reject",
            Self::Turned => {
                "add `examples` that it must reject and `x-misses` that it must accept, inside `not`"
            }
        }
    }
}

fn look(schema: &Value, sense: Sense) -> Option<&'static str> {
    schema.get("pattern").filter(|pattern| pattern.is_string())?;
    let has =
        |keyword: &str| schema.get(keyword).and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    let (fits, misses) = (has("examples"), has("x-misses"));
    let (lets_through, refuses) = if sense == Sense::Kept { (fits, misses) } else { (misses, fits) };
    match (lets_through, refuses) {
        (true, true) => None,
        (true, false) => Some("the rule for a command argument has no example that it must reject"),
        (false, true) => Some("the rule for a command argument has no example that it must accept"),
        (false, false) => Some("the rule for a command argument has no examples"),
    }
}

/// The parts of a value on a command line, with their rules.
fn inside<'v>(place: &Pointer, schema: &'v Value, sense: Sense) -> Vec<(Pointer, &'v Value, Sense)> {
    let single =
        ["contains", "else", "if", "items", "then", "unevaluatedItems"].map(|keyword| (keyword, sense));
    let single = single
        .into_iter()
        .chain([("not", sense.turned())])
        .filter_map(|(keyword, sense)| Some((place.key(keyword), schema.get(keyword)?, sense)));
    let many = ["allOf", "anyOf", "oneOf", "prefixItems"].into_iter().flat_map(|keyword| {
        let parts = schema.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate();
        parts.map(move |(index, part)| (place.key(keyword).index(index), part, sense))
    });
    single.chain(many).collect()
}

const DEFINED: &str = "#/$defs/";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{Code, Format, check_text};

    /// The rejected positions in a command with these properties and arguments.
    #[track_caller]
    fn check(properties: &str, args: &str, expect: &[&str]) {
        let text = format!(
            "
name: tried
description: Is tried. Returns text.
classification: read
input:
  type: object
  properties: {{{properties}}}
  $defs: {{word: {{type: string, pattern: '^w$'}}}}
testInput: {{}}
handler: {{cli: {{command: cat, args: [{args}]}}}}
"
        );
        let findings = check_text(&text, Format::Yaml).tools.into_iter().flat_map(|tool| tool.findings);
        let errors = findings.filter(|finding| finding.code == Code::SpecInvariant);
        let mut places: Vec<String> = errors.map(|finding| finding.at.to_string()).collect();
        places.sort();
        assert_eq!(places, expect, "{text}");
    }

    #[test]
    fn argument_rule_without_examples_is_rejected() {
        let when = "{when: a, args: ['{a}']}";
        let at = "/input/properties/a/pattern";
        check("a: {type: string, pattern: '^a$'}", when, &[at]);
        check("a: {type: string, pattern: '^a$', examples: [a], x-misses: [b]}", when, &[]);
        // A rule that accepts everything fits all examples; one that rejects everything fits all misses.
        check("a: {type: string, pattern: '^a$', examples: [a]}", when, &[at]);
        check("a: {type: string, pattern: '^a$', x-misses: [b]}", when, &[at]);
        check("a: {type: string, maxLength: 3}", when, &[]);
        let each = "{each: a, args: ['{item}']}";
        let list = "a: {type: array, items: {type: string, pattern: '^a$'}}";
        check(list, each, &["/input/properties/a/items/pattern"]);
        let either = "a: {type: string, anyOf: [{pattern: '^a$'}, {enum: [b]}]}";
        check(either, when, &["/input/properties/a/anyOf/0/pattern"]);
        for (rule, place) in [
            ("not: {pattern: '^[.]'}", "not"),
            ("if: {pattern: '^a'}, then: {maxLength: 3}", "if"),
            ("if: {maxLength: 3}, then: {pattern: '^a'}", "then"),
            ("if: {maxLength: 3}, else: {pattern: '^a'}", "else"),
            ("not: {not: {pattern: '^a'}}", "not/not"),
        ] {
            check(
                &format!("a: {{type: string, {rule}}}"),
                when,
                &[&format!("/input/properties/a/{place}/pattern")],
            );
        }
        for (rule, place) in [
            ("prefixItems: [{pattern: '^a'}], items: {type: string}", "prefixItems/0"),
            ("contains: {pattern: '^a'}, items: {type: string}", "contains"),
        ] {
            let list = format!("a: {{type: array, {rule}}}");
            check(&list, each, &[&format!("/input/properties/a/{place}/pattern")]);
        }
        // Reported once, at its position.
        let both = "a: {$ref: '#/$defs/word'}, b: {$ref: '#/$defs/word'}";
        let args = "{when: a, args: ['{a}']}, {when: b, args: ['{b}']}";
        check(both, args, &["/input/$defs/word/pattern"]);
    }

    #[test]
    fn examples_are_inverted_inside_not() {
        let problem = |rule: &str| {
            let rule: Value = serde_json::from_str(rule).unwrap();
            let input = json!({ "properties": { "a": { "not": rule } } });
            super::of(&input, |_| true).first().map(|rule| rule.problem)
        };
        assert_eq!(problem(r#"{"pattern": "^[.]", "examples": [".a"], "x-misses": ["a"]}"#), None);
        let no_good = problem(r#"{"pattern": "^[.]", "examples": [".a"]}"#).unwrap();
        assert!(no_good.ends_with("must accept"), "{no_good}");
        let no_bad = problem(r#"{"pattern": "^[.]", "x-misses": ["a"]}"#).unwrap();
        assert!(no_bad.ends_with("must reject"), "{no_bad}");
    }

    #[test]
    fn pattern_must_reject_a_miss_itself() {
        let when = "{when: a, args: ['{a}']}";
        let at = "/input/properties/a/x-misses";
        check("a: {type: string, pattern: '.*', examples: [a], x-misses: [5]}", when, &[at]);
        check(
            "a: {type: string, maxLength: 3, pattern: '.*', examples: [a], x-misses: ['-rf /']}",
            when,
            &[at],
        );
        check(
            "a: {type: string, maxLength: 3, pattern: '^[a-z ]+$', examples: [a], x-misses: [5, '-rf /']}",
            when,
            &[],
        );
        // Without a pattern, another rule needs examples.
        check("a: {type: string, maxLength: 3, x-misses: [abcd]}", when, &[]);
    }
}
