//! What is allowed and yet probably not meant. Warnings only; see `Code` for what each one watches for.
//!
//! Every document passes through here, so each lint begins with a cheap look and works only where that look found
//! something. `docs/lints.md` lists them all.

mod helpers;
mod names;
mod needles;
mod poison;
mod prose;
mod reach;
mod report;
mod secret;
mod show;
mod test_value;
mod trail;
mod untried;

pub use helpers::{DeniedHelpers, MissingHelper, helpers_of, missing_helpers};
pub use poison::name_looks;
use serde_json::{Map, Value};

pub(crate) use show::shown;

use crate::{Finding, model::ToolSpec};

pub(crate) fn lint(document: &Map<String, Value>, spec: &ToolSpec, findings: &mut Vec<Finding>) {
    let mut report = report::Report::new(findings);
    secret::check(document, &mut report);
    poison::check(document, &mut report);
    prose::check(document, spec, &mut report);
    names::check(document, spec, &mut report);
    test_value::check(spec, &mut report);
    reach::check(document, spec, &mut report);
    helpers::check(document, spec, &mut report);
    untried::check(document, spec, &mut report);
    report.close();
}
