//! Finds rules without examples for values that reach `cli.env` or `cli.stdin`. For `cli.args` they are an error.

use serde_json::{Map, Value};

use super::report::LintReport;
use crate::{
    Code,
    invariant::{MissingExamples, is_on_command_line, rules_without_examples},
    model::{Body, Handler, ToolSpec},
};

pub(super) fn check(document: &Map<String, Value>, spec: &ToolSpec, report: &mut LintReport<'_>) {
    let Body::Handler(Handler::Cli(cli)) = &spec.body else { return };
    let Some(input) = document.get("input") else { return };
    let texts = || cli.env.iter().map(|variable| &variable.value).chain(&cli.stdin);
    let is_meant = |name: &str| {
        !is_on_command_line(cli, name) && texts().any(|template| template.names().any(|used| used == name))
    };
    for MissingExamples { at, problem, remedy } in rules_without_examples(input, is_meant) {
        report.add(Code::LintArgumentUntried, at, problem, remedy);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Code, Format, check_text};

    /// The reported positions for a tool with this rule for `a` and this handler.
    #[track_caller]
    fn check(rule: &str, handler: &str, expect: &[&str]) {
        let text = format!(
            "
name: tried
description: Is tried. Returns text.
classification: read
input: {{type: object, properties: {{a: {{type: string, {rule}}}}}}}
testInput: {{}}
handler: {{{handler}}}
"
        );
        let findings: Vec<_> =
            check_text(&text, Format::Yaml).tools.into_iter().flat_map(|tool| tool.findings).collect();
        assert!(findings.iter().all(|finding| !finding.is_error()), "{text}\n{findings:#?}");
        let untried = findings.iter().filter(|finding| finding.code == Code::LintArgumentUntried);
        let places: Vec<String> = untried.map(|finding| finding.at.to_string()).collect();
        assert_eq!(places, expect, "{text}");
    }

    #[test]
    fn rule_for_env_or_stdin_without_examples_is_reported() {
        let at = "/input/properties/a/pattern";
        check("pattern: '^a$'", "cli: {command: cat, stdin: '{a}'}", &[at]);
        check("pattern: '^a$'", "cli: {command: cat, env: {A: '{a}'}}", &[at]);
        check("pattern: '^a$', examples: [a], x-misses: [b]", "cli: {command: cat, stdin: '{a}'}", &[]);
    }

    #[test]
    fn rule_for_unused_value_is_not_reported() {
        let rule = "pattern: '^a$'";
        check(rule, "http: {method: GET, url: 'https://example.com/', query: {a: '{a}'}}", &[]);
    }
}
