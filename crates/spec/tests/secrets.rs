//! The lint for secrets in documents reports every secret that the detector proves.
#![allow(clippy::unwrap_used, reason = "a test fails loudly")]

use serde_json::json;
use toolgate_secrets::Tier;
use toolgate_spec::{Code, Format, check_text};

#[path = "../../secrets/tests/known/mod.rs"]
mod known;

#[test]
fn definite_secrets_in_a_description_are_reported() {
    let definite = known::known().into_iter().filter(|one| one.tier == Tier::Definite);
    let missed: Vec<String> = definite
        .filter(|one| !is_reported(&one.text))
        .map(|one| format!("{} ({})", one.name, one.provider))
        .collect();
    assert!(missed.is_empty(), "not reported: {}", missed.join(", "));
}

#[test]
fn ordinary_sentence_is_not_reported() {
    assert!(!is_reported("Says something about keys and tokens."));
}

fn is_reported(text: &str) -> bool {
    let document = json!({ "name": "say", "description": text, "code": "return 1" }).to_string();
    let checked = check_text(&document, Format::Json);
    checked.tools.iter().flat_map(|tool| &tool.findings).any(|finding| finding.code == Code::LintSecretText)
}
