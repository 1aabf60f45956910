//! Checks between fields that are each well-formed but invalid together.

mod file;
mod manifest;
mod numbers;
mod params;
mod reach;

use serde_json::{Map, Value};

pub(crate) use file::bundle;
pub(crate) use manifest::{MissingExamples, check_capability, is_on_command_line, rules_without_examples};
pub use manifest::{
    decides_what_runs, loads_code, program_family, refuse_program_file, starts_other_programs,
};
pub(crate) use numbers::wide_numbers;

use crate::{Code, Finding, Pointer, Schema, block, lint::shown, model::ToolSpec};

pub(crate) fn check(document: &Map<String, Value>, spec: &ToolSpec, findings: &mut Vec<Finding>) {
    one_body(document, findings);
    void_guards(document, findings);
    params::check(spec, findings);
    reach::check(spec, findings);
    manifest::check(document, spec, findings);
}

fn one_body(document: &Map<String, Value>, findings: &mut Vec<Finding>) {
    if document.contains_key("handler") && document.contains_key("code") {
        findings.push(
            broken("/code", "a tool has `code` or a `handler`, not both", "keep the one that should run")
                .at_key(),
        );
    }
}

/// Rejects misspelt guards: they would be accepted as vendor fields and enforce nothing.
fn void_guards(document: &Map<String, Value>, findings: &mut Vec<Finding>) {
    let is_manifest = document.contains_key("handler");
    let known = Schema::SafeToolSpec.document().get("properties").and_then(Value::as_object);
    let is_known = |key: &str| !is_manifest && known.is_some_and(|known| known.contains_key(key));
    for (key, value) in document.iter().filter(|(key, _)| !is_known(key)) {
        let remedy = if is_manifest {
            // The schema of a manifest rejects unknown keys except `x-…`.
            let is_ours = key.starts_with("x-") && block::is_prefixed(key);
            is_ours.then(|| "in a manifest, write the block under its own name, without `x-toolgate-`".into())
        } else {
            block::remedy_for_void_guard(key).or_else(|| block::remedy_for_misplaced_setting(key, value))
        };
        if let Some(remedy) = remedy {
            let message = format!("`{}` has no effect under this name", shown(key));
            let finding = Finding::new(Code::SpecInvariant, Pointer::root().key(key), message, remedy);
            findings.push(finding.at_key());
        }
    }
}

/// Rejects guards beside `toolSpecs`: a bundle has no guards, so its tools would run without them.
pub(crate) fn guards_of_bundle(bundle: &Map<String, Value>) -> Vec<Finding> {
    let known = Schema::ToolBundle.document().get("properties").and_then(Value::as_object);
    let is_known = |key: &str| known.is_some_and(|known| known.contains_key(key));
    let is_void = |(key, value): &(&String, &Value)| !is_known(key) && block::reads_like_guard(key, value);
    let refuse = |(key, _): (&String, &Value)| {
        let message = format!("`{}` has no effect beside `toolSpecs`", shown(key));
        let remedy = "write it inside each tool it applies to";
        Finding::new(Code::SpecInvariant, Pointer::root().key(key), message, remedy).at_key()
    };
    bundle.iter().filter(is_void).map(refuse).collect()
}

fn broken(at: &str, message: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding::new(Code::SpecInvariant, Pointer::new(at), message, remedy)
}
