//! Fields that are well-formed one by one and cannot be right together.

mod file;
mod manifest;
mod numbers;
mod params;
mod reach;

use serde_json::{Map, Value};

pub(crate) use file::bundle;
pub(crate) use manifest::{Untried, check_capability, feeds_line, untried_rules};
pub use manifest::{
    decides_what_runs, loads_code, program_family, refuse_program_file, starts_other_programs,
};
pub(crate) use numbers::wide_numbers;

use crate::{Code, Finding, Pointer, model::ToolSpec};

pub(crate) fn check(document: &Map<String, Value>, spec: &ToolSpec, findings: &mut Vec<Finding>) {
    one_body(document, findings);
    our_own_namespace(document, findings);
    params::check(spec, findings);
    reach::check(spec, findings);
    manifest::check(document, spec, findings);
}

fn one_body(document: &Map<String, Value>, findings: &mut Vec<Finding>) {
    if document.contains_key("handler") && document.contains_key("code") {
        findings.push(
            broken("/code", "a tool has `code` or a `handler`, not both", "keep the one that shall run")
                .at_key(),
        );
    }
}

/// A misspelt safety block must not pass as somebody's vendor field.
fn our_own_namespace(document: &Map<String, Value>, findings: &mut Vec<Finding>) {
    let is_manifest = document.contains_key("handler");
    for key in document.keys().filter(|key| key.starts_with("x-toolgate-")) {
        if is_manifest || !OUR_FIELDS.contains(&key.as_str()) {
            let remedy = match crate::similar::closest(key, OUR_FIELDS.into_iter()) {
                Some(close) if !is_manifest => format!("did you mean `{close}`?"),
                _ if is_manifest => {
                    "a manifest has these blocks under their own names, without `x-toolgate-`".into()
                }
                _ => format!("known: {}", OUR_FIELDS.join(", ")),
            };
            findings.push(
                Finding::new(
                    Code::SpecInvariant,
                    Pointer::root().key(key),
                    format!("unknown field `{key}`"),
                    remedy,
                )
                .at_key(),
            );
        }
    }
}

fn broken(at: &str, message: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding::new(Code::SpecInvariant, Pointer::new(at), message, remedy)
}

const OUR_FIELDS: [&str; 8] = [
    "x-toolgate-capability",
    "x-toolgate-classification",
    "x-toolgate-output",
    "x-toolgate-outputPolicy",
    "x-toolgate-permissions",
    "x-toolgate-piiFields",
    "x-toolgate-profile",
    "x-toolgate-touches",
];
