//! Checks the blocks of a manifest against each other, and whether the handler can run safely. The `x-toolgate-…`
//! blocks of a Safe Tool Spec follow the same rules.

mod capability;
mod cli;
mod command;
mod environment;
mod formats;
mod grpc;
mod headers;
mod http;
mod input;
mod interpreter;
mod json_schema;
mod line_states;
mod mcp;
mod missing_examples;
mod output;
mod permissions;
mod program_options;
mod references;
mod regular_expression;
mod remote_shell;
mod report;
mod scope;
mod templates;
mod touches;
mod url;

use serde_json::{Map, Value};

pub(crate) use capability::check_standalone as check_capability;
pub use cli::refuse_file as refuse_program_file;
pub use command::{family as program_family, starts_others as starts_other_programs};
pub use environment::{decides_what_runs, loads_code};
pub(crate) use missing_examples::{MissingExamples, is_on_command_line, of as rules_without_examples};

use self::{report::ManifestReport, scope::TemplateScope};
use crate::{
    Finding, Pointer, decode,
    model::{Body, Handler, ToolSpec},
};

pub(super) fn check(document: &Map<String, Value>, spec: &ToolSpec, findings: &mut Vec<Finding>) {
    if !decode::has_blocks(document) {
        return;
    }
    let report = &mut ManifestReport::new(document, findings);
    let scope = &TemplateScope::of(document, spec);
    if report.is_manifest() {
        classification(report);
        input::check(spec, report);
    }
    permissions::check(scope, report);
    touches::check(spec, scope, report);
    output::check(spec, report);
    capability::check(spec, report);
    if let Body::Handler(handler) = &spec.body {
        self::handler(handler, scope, report);
    }
}

/// Requires a classification. Without one, the tool would have to be rated as destructive.
fn classification(report: &mut ManifestReport<'_>) {
    if report.at(&Pointer::new("/classification")).is_none_or(Value::is_null) {
        report.add(
            &Pointer::root(),
            "`classification` is missing",
            "write `classification: read`, `write` or `destructive`",
        );
    }
}

fn handler(handler: &Handler, scope: &TemplateScope, report: &mut ManifestReport<'_>) {
    let at = Pointer::new("/handler").key(handler.name());
    // The schema has already reported an unknown handler kind.
    if !report.at(&at).is_some_and(Value::is_object) {
        return;
    }
    let timeout = match handler {
        Handler::Cli(command) => {
            cli::check(command, &at, scope, report);
            command.timeout_ms
        }
        Handler::Http(request) => {
            http::check(request, &at, scope, report);
            request.timeout_ms
        }
        Handler::Grpc(call) => {
            grpc::check(call, &at, scope, report);
            call.timeout_ms
        }
        Handler::Mcp(upstream) => {
            mcp::check(upstream, &at, report);
            upstream.timeout_ms
        }
        Handler::Rust => None,
    };
    if let Some(timeout) = timeout {
        capability::timeouts_agree(timeout, &at.key("timeout"), report);
    }
}
