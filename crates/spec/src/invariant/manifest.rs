//! What a manifest's blocks say about each other, and whether what it asks for can be carried out safely.
//! A Safe Tool Spec carries some of these blocks as `x-toolgate-…`; they are judged by the same rules.

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
mod mcp;
mod output;
mod permissions;
mod possible;
mod program_options;
mod references;
mod regular_expression;
mod remote_shell;
mod report;
mod scope;
mod templates;
mod touches;
mod untried;
mod url;

use serde_json::{Map, Value};

pub(crate) use capability::check_alone as check_capability;
pub use cli::refuse_file as refuse_program_file;
pub use command::{family as program_family, starts_others as starts_other_programs};
pub use environment::{decides_what_runs, loads_code};
pub(crate) use untried::{Untried, feeds_line, of as untried_rules};

use self::{report::Report, scope::Scope};
use crate::{
    Finding, Pointer, decode,
    model::{Body, Handler, ToolSpec},
};

pub(super) fn check(document: &Map<String, Value>, spec: &ToolSpec, findings: &mut Vec<Finding>) {
    if !decode::has_blocks(document) {
        return;
    }
    let report = &mut Report::new(document, findings);
    let scope = &Scope::of(document, spec);
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

/// Silence about what a call can do to the world would have to be read as the worst; better to ask.
fn classification(report: &mut Report<'_>) {
    if report.at(&Pointer::new("/classification")).is_none_or(Value::is_null) {
        report.say(
            &Pointer::root(),
            "`classification` is missing",
            "write `classification: read`, `write` or `destructive`",
        );
    }
}

fn handler(handler: &Handler, scope: &Scope, report: &mut Report<'_>) {
    let at = Pointer::new("/handler").key(handler.name());
    // Where the schema found no handler of a known kind, it has said so, and there is nothing to judge.
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
            mcp::check(upstream, &at, scope, report);
            upstream.timeout_ms
        }
        Handler::Rust => None,
    };
    if let Some(timeout) = timeout {
        capability::timeouts_agree(timeout, &at.key("timeout"), report);
    }
}
