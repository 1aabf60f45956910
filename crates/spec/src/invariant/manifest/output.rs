//! Checks the result: a schema that clients accept, an unambiguous field policy, and a valid selection.

use serde_json::Value;

use super::{json_schema, report::ManifestReport};
use crate::{
    FieldPattern, Pointer,
    model::{Body, CommandOutput, Handler, OutputAction, ToolSpec},
};

pub(super) fn check(spec: &ToolSpec, report: &mut ManifestReport<'_>) {
    let at = report.block("output");
    if let Some(output) = report.at(&at).filter(|output| output.is_object()) {
        object_at_top(output, &at, "wrap the result: `{type: object, properties: {result: ...}}`", report);
        json_schema::check(output, &at, report);
    }
    policy(report);
    if let Body::Handler(Handler::Cli(cli)) = &spec.body
        && let CommandOutput::Select(path) = &cli.output
        && !path.is_empty()
        && let Err(why) = FieldPattern::parse(path)
    {
        report.add(
            &Pointer::new("/handler/cli/output/select"),
            format!("not a path: {why}"),
            "write `.items[].name`, `.a.b` or `..name`",
        );
    }
}

pub(super) fn object_at_top(schema: &Value, at: &Pointer, remedy: &str, report: &mut ManifestReport<'_>) {
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        // The meta-schema reports an invalid type.
        Some(Value::String(_) | Value::Array(_)) => {
            report.add(&at.key("type"), "the top level is not `type: object`", remedy);
        }
        Some(_) => {}
        None => report.add(at, "`type: object` is missing at the top level", remedy),
    }
}

/// Rejects two rules for the same fields in different spellings.
fn policy(report: &mut ManifestReport<'_>) {
    let at = report.block("outputPolicy");
    let mut earlier: Vec<(FieldPattern, OutputAction)> = Vec::new();
    for (path, action) in report.at(&at).and_then(Value::as_object).into_iter().flatten() {
        let Some(action) = action.as_str().and_then(OutputAction::from_name) else { continue };
        let Ok(pattern) = FieldPattern::parse(path) else { continue };
        let twin =
            earlier.iter().find(|(other, theirs)| *theirs != action && other.means_the_same_as(&pattern));
        if let Some((other, theirs)) = twin {
            report.add(
                &at.key(path),
                format!("`{path}` names the same fields as `{other}`, which says `{}`", theirs.name()),
                "keep one of the two",
            );
        }
        earlier.push((pattern, action));
    }
}
