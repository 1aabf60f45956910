//! Lints: valid documents that probably do not say what the author meant. Warnings only; see `Code` for each.
//!
//! Every document passes all lints, so each one starts with a cheap test. `docs/lints.md` lists them.

mod helpers;
mod missing_examples;
mod names;
mod needles;
mod poison;
mod prose;
mod reach;
mod report;
mod secret;
mod show;
mod test_value;
mod value_path;

pub use helpers::{DeniedHelpers, MissingHelper, helpers_of, missing_helpers};
pub use poison::name_looks;
use serde_json::{Map, Value};

pub(crate) use show::shown;

use crate::{Finding, model::ToolSpec};

pub(crate) fn lint(document: &Map<String, Value>, spec: &ToolSpec, findings: &mut Vec<Finding>) {
    let mut report = report::LintReport::new(findings);
    secret::check(document, &mut report);
    poison::check(document, &mut report);
    prose::check(document, spec, &mut report);
    names::check(document, spec, &mut report);
    test_value::check(spec, &mut report);
    reach::check(document, spec, &mut report);
    helpers::check(document, spec, &mut report);
    missing_examples::check(document, spec, &mut report);
    report.close();
}
