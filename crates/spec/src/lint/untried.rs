//! Was the rule for an argument that reaches a command line ever tried?

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::report::Report;
use crate::{
    Code, Pointer,
    model::{ArgumentGroup, Body, Handler, ToolSpec},
};

pub(super) fn check(document: &Map<String, Value>, spec: &ToolSpec, report: &mut Report<'_>) {
    let Body::Handler(Handler::Cli(cli)) = &spec.body else { return };
    let Some(input) = document.get("input") else { return };
    let feeds = |name: &str| {
        cli.args.iter().any(|group| match group {
            ArgumentGroup::One(one) => one.template.names().any(|used| used == name),
            ArgumentGroup::When { param, args } | ArgumentGroup::Each { param, args } => {
                param == name || args.iter().flat_map(|one| one.template.names()).any(|used| used == name)
            }
        })
    };
    let properties = input.get("properties").and_then(Value::as_object).into_iter().flatten();
    let at = Pointer::root().key("input");
    let mut left: Vec<(Pointer, &Value)> = properties
        .filter(|(name, _)| feeds(name))
        .map(|(name, schema)| (at.key("properties").key(name), schema))
        .collect();
    let mut known = BTreeSet::new();
    while let Some((place, schema)) = left.pop() {
        if !known.insert(place.clone()) {
            continue;
        }
        look(&place, schema, report);
        left.extend(inside(&place, schema));
        if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix(DEFINED))
            && let Some(definition) = input.get("$defs").and_then(|all| all.get(name))
        {
            left.push((at.key("$defs").key(name), definition));
        }
    }
}

fn look(place: &Pointer, schema: &Value, report: &mut Report<'_>) {
    if !schema.get("pattern").is_some_and(Value::is_string) {
        return;
    }
    let has =
        |keyword: &str| schema.get(keyword).and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    let problem = match (has("examples"), has("x-misses")) {
        (true, true) => return,
        (true, false) => "the rule for an argument of the command was tried with nothing that it must refuse",
        (false, true) => {
            "the rule for an argument of the command was tried with nothing that it must let through"
        }
        (false, false) => "the rule for an argument of the command was never tried",
    };
    report.add(
        Code::LintArgumentUntried,
        place.key("pattern"),
        problem,
        "write `examples` that it must let through and `x-misses` that it must refuse beside it",
    );
}

/// The parts of which a value that is written into a command line can be made.
fn inside<'v>(place: &Pointer, schema: &'v Value) -> Vec<(Pointer, &'v Value)> {
    let one = schema.get("items").map(|items| (place.key("items"), items));
    let many = ["anyOf", "oneOf", "allOf"].into_iter().flat_map(|keyword| {
        let parts = schema.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate();
        parts.map(move |(index, part)| (place.key(keyword).index(index), part))
    });
    one.into_iter().chain(many).collect()
}

const DEFINED: &str = "#/$defs/";

#[cfg(test)]
mod tests {
    use crate::{Code, Format, check_text};

    /// The places that are reported, of a command with these properties of its input and these arguments.
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
        let findings: Vec<_> =
            check_text(&text, Format::Yaml).tools.into_iter().flat_map(|tool| tool.findings).collect();
        assert!(findings.iter().all(|finding| !finding.is_error()), "{text}\n{findings:#?}");
        let mut places: Vec<String> = findings
            .iter()
            .filter(|finding| finding.code == Code::LintArgumentUntried)
            .map(|finding| finding.at.to_string())
            .collect();
        places.sort();
        assert_eq!(places, expect, "{text}");
    }

    #[test]
    fn a_rule_for_an_argument_that_nobody_tried_is_told() {
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
        // Said once, where it stands.
        let both = "a: {$ref: '#/$defs/word'}, b: {$ref: '#/$defs/word'}";
        let args = "{when: a, args: ['{a}']}, {when: b, args: ['{b}']}";
        check(both, args, &["/input/$defs/word/pattern"]);
    }

    #[test]
    fn what_reaches_no_command_line_is_not_told() {
        let text = "
name: tried
description: Is tried. Returns text.
input: {type: object, properties: {a: {type: string, pattern: '^a$'}}}
testInput: {}
handler: {http: {method: GET, url: 'https://example.com/{a}'}}
";
        let findings = check_text(text, Format::Yaml).tools.into_iter().flat_map(|tool| tool.findings);
        assert_eq!(findings.filter(|finding| finding.code == Code::LintArgumentUntried).count(), 0);
    }
}
