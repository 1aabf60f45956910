//! Are the regular expressions of a capability block ones? Asked once, when a file is loaded; `resolve` keeps them as text.

use toolgate_spec::{
    Code, Finding, Pointer,
    model::{Body, CapabilityPatch, ToolSpec},
};

/// Every pattern of the document that does not compile. A tool with one is not published: a pattern that cannot be
/// matched would be a question that is never asked, or a secret that is never redacted.
pub fn check_patterns(spec: &ToolSpec) -> Vec<Finding> {
    let capability = match spec.body {
        Body::JavaScript { .. } => Pointer::new("/x-toolgate-capability"),
        Body::Handler(_) => Pointer::new("/capability"),
    };
    broken(&spec.governance.capability)
        .map(|(block, key, index, pattern)| {
            Finding::new(
                Code::SpecInvariant,
                capability.key(block).key(key).index(index),
                format!("`{pattern}` is not a regular expression"),
                "write it in the syntax of the Rust crate `regex`; there is no look-around and no back-reference",
            )
        })
        .collect()
}

/// As `check_patterns`, for blocks outside a document.
pub(crate) fn problems(patch: &CapabilityPatch) -> Vec<String> {
    broken(patch).map(|(.., pattern)| format!("`{pattern}` is not a regular expression")).collect()
}

fn broken(patch: &CapabilityPatch) -> impl Iterator<Item = (&'static str, &'static str, usize, &str)> {
    let danger = patch.approval.danger_patterns.iter().flatten().enumerate();
    let redact = patch.audit.redact_patterns.iter().flatten().enumerate();
    let danger = danger.map(|(index, pattern)| ("approval", "dangerPatterns", index, pattern.as_str()));
    let redact = redact.map(|(index, pattern)| ("audit", "redactPatterns", index, pattern.as_str()));
    danger.chain(redact).filter(|(.., pattern)| regex::Regex::new(pattern).is_err())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[track_caller]
    fn check(document: &str, expect: &[&str]) {
        let shown: Vec<String> = check_patterns(&testing::spec(document))
            .iter()
            .map(|finding| format!("{}: {}", finding.at, finding.message))
            .collect();
        assert_eq!(shown, expect);
    }

    #[test]
    fn a_pattern_that_cannot_match_is_found_where_it_stands() {
        check(
            &testing::js("x-toolgate-capability: {approval: {dangerPatterns: [ok, '(']}}"),
            &["/x-toolgate-capability/approval/dangerPatterns/1: `(` is not a regular expression"],
        );
        check(
            &testing::manifest("cli: {command: date}", "capability: {audit: {redactPatterns: ['(?=x)']}}"),
            &["/capability/audit/redactPatterns/0: `(?=x)` is not a regular expression"],
        );
        check(testing::PLAIN, &[]);
    }
}
