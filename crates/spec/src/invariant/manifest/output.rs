//! The result: a schema that clients accept, a field policy that says one thing, a selection that can be made.

use serde_json::Value;

use super::{json_schema, report::Report};
use crate::{
    FieldPattern, Pointer,
    model::{Body, CommandOutput, Handler, OutputAction, ToolSpec},
};

pub(super) fn check(spec: &ToolSpec, report: &mut Report<'_>) {
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
        report.say(
            &Pointer::new("/handler/cli/output/select"),
            format!("not a path: {why}"),
            "write `.items[].name`, `.a.b` or `..name`",
        );
    }
}

pub(super) fn object_at_top(schema: &Value, at: &Pointer, remedy: &str, report: &mut Report<'_>) {
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        // The meta-schema has something to say about a type that is no type.
        Some(Value::String(_) | Value::Array(_)) => {
            report.say(&at.key("type"), "the top level is not `type: object`", remedy);
        }
        Some(_) => {}
        None => report.say(at, "`type: object` is missing at the top level", remedy),
    }
}

/// The same fields under two spellings, with two actions: which of them was meant?
fn policy(report: &mut Report<'_>) {
    let at = report.block("outputPolicy");
    let mut earlier: Vec<(FieldPattern, OutputAction)> = Vec::new();
    for (path, action) in report.at(&at).and_then(Value::as_object).into_iter().flatten() {
        let Some(action) = action.as_str().and_then(OutputAction::from_name) else { continue };
        let Ok(pattern) = FieldPattern::parse(path) else { continue };
        let twin =
            earlier.iter().find(|(other, theirs)| *theirs != action && other.means_the_same_as(&pattern));
        if let Some((other, theirs)) = twin {
            report.say(
                &at.key(path),
                format!("`{path}` names the same fields as `{other}`, which says `{}`", theirs.name()),
                "keep one of the two",
            );
        }
        earlier.push((pattern, action));
    }
}
