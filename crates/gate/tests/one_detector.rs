//! The lint for credentials in documents has a table of its own, for the crate of documents depends on none of ours. What the
//! detector is sure of, the lint must point out too.
#![allow(clippy::unwrap_used, reason = "a test fails loudly")]

use serde_json::json;
use toolgate_secrets::Tier;
use toolgate_spec::{Code, Format, check_text};

#[path = "../../secrets/tests/known/mod.rs"]
mod known;

#[test]
fn the_lint_points_out_what_the_detector_is_sure_of() {
    let mut missed = Vec::new();
    for one in known::known().into_iter().filter(|one| one.tier == Tier::Definite) {
        if is_pointed_out(&one.text) == NOT_BY_THE_LINT.contains(&one.name) {
            missed.push(format!("{} ({})", one.name, one.provider));
        }
    }
    assert!(missed.is_empty(), "missed, or found although it is listed: {}", missed.join(", "));
}

#[test]
fn an_ordinary_sentence_is_not_pointed_out() {
    assert!(!is_pointed_out("Says something about keys and tokens."));
}

fn is_pointed_out(text: &str) -> bool {
    let document = json!({ "name": "say", "description": text, "code": "return 1" }).to_string();
    let checked = check_text(&document, Format::Json);
    let findings = checked.tools.iter().flat_map(|tool| &tool.findings);
    findings.into_iter().any(|finding| finding.code == Code::LintSecretText)
}

/// It has no fixed characters by which the lint could find it, unless `discord` or `bot` stands before it.
const NOT_BY_THE_LINT: &[&str] = &["Discord"];
