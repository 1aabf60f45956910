//! Which rules for what a caller writes were never tried with a value that they must let through and one that they must refuse?

use std::collections::BTreeSet;

use serde_json::Value;

use super::report::Report;
use crate::{
    Pointer,
    model::{ArgumentGroup, Body, CliHandler, Handler, ToolSpec},
};

/// A rule that nobody tried, and what is missing.
pub struct Untried {
    pub at: Pointer,
    pub problem: &'static str,
    pub remedy: &'static str,
}

/// A rule for an argument of a command is all that stands between a caller and its command line.
pub(super) fn check(spec: &ToolSpec, input: &Value, report: &mut Report<'_>) {
    let Body::Handler(Handler::Cli(cli)) = &spec.body else { return };
    for Untried { at, problem, remedy } in of(input, |name| feeds_line(cli, name)) {
        report.say(&at, problem, remedy);
    }
}

/// Does the command line depend on this parameter?
pub fn feeds_line(cli: &CliHandler, name: &str) -> bool {
    cli.args.iter().any(|group| match group {
        ArgumentGroup::One(one) => one.template.names().any(|used| used == name),
        ArgumentGroup::When { param, args } | ArgumentGroup::Each { param, args } => {
            param == name || args.iter().flat_map(|one| one.template.names()).any(|used| used == name)
        }
    })
}

/// Among the rules for these properties, each told once, where it stands.
pub fn of(input: &Value, is_meant: impl Fn(&str) -> bool) -> Vec<Untried> {
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
        found.extend(look(schema, sense).map(|problem| Untried {
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

/// What becomes of a value that a pattern fits?
#[derive(Clone, Copy, Eq, PartialEq)]
enum Sense {
    Kept,
    /// Inside `not` it is refused.
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
            Self::Kept => {
                "write `examples` that it must let through and `x-misses` that it must refuse beside it"
            }
            Self::Turned => {
                "write `examples` that it must refuse and `x-misses` that it must let through beside it, inside `not`"
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
        (true, false) => {
            Some("the rule for an argument of the command was tried with nothing that it must refuse")
        }
        (false, true) => {
            Some("the rule for an argument of the command was tried with nothing that it must let through")
        }
        (false, false) => Some("the rule for an argument of the command was never tried"),
    }
}

/// The parts of which a value that is written into a command line can be made, and the rules for it.
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

    /// The places that are refused, of a command with these properties of its input and these arguments.
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
    fn a_rule_for_an_argument_that_nobody_tried_is_refused() {
        let when = "{when: a, args: ['{a}']}";
        let at = "/input/properties/a/pattern";
        check("a: {type: string, pattern: '^a$'}", when, &[at]);
        check("a: {type: string, pattern: '^a$', examples: [a], x-misses: [b]}", when, &[]);
        // One that lets everything through fits every example, and one that refuses everything every miss.
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
        // Said once, where it stands.
        let both = "a: {$ref: '#/$defs/word'}, b: {$ref: '#/$defs/word'}";
        let args = "{when: a, args: ['{a}']}, {when: b, args: ['{b}']}";
        check(both, args, &["/input/$defs/word/pattern"]);
    }

    #[test]
    fn inside_not_what_fits_the_pattern_is_what_the_rule_refuses() {
        let problem = |rule: &str| {
            let rule: Value = serde_json::from_str(rule).unwrap();
            let input = json!({ "properties": { "a": { "not": rule } } });
            super::of(&input, |_| true).first().map(|untried| untried.problem)
        };
        assert_eq!(problem(r#"{"pattern": "^[.]", "examples": [".a"], "x-misses": ["a"]}"#), None);
        let no_good = problem(r#"{"pattern": "^[.]", "examples": [".a"]}"#).unwrap();
        assert!(no_good.ends_with("must let through"), "{no_good}");
        let no_bad = problem(r#"{"pattern": "^[.]", "x-misses": ["a"]}"#).unwrap();
        assert!(no_bad.ends_with("must refuse"), "{no_bad}");
    }

    #[test]
    fn a_pattern_is_tried_with_a_text_that_it_refuses_itself() {
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
        // Without a pattern there is another rule to try.
        check("a: {type: string, maxLength: 3, x-misses: [abcd]}", when, &[]);
    }
}
