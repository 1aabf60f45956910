//! Commands made in code by whoever embeds the gateway: the same checks on every element.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_gate::{Reason, Refusal};
use toolgate_handlers::{Arg, CliCommand};

use crate::world::{World, call, resolve, said};

/// The document says what the arguments are and what is allowed; its own handler is not used.
const DOCUMENT: &str = "
name: log
description: Shows commits. Returns text.
classification: read
input:
  type: object
  properties: {count: {type: integer}, path: {type: string, format: path}}
testInput: {}
handler: {cli: {command: 'true', args: [{when: count, args: ['{count}']}, {when: path, args: ['{path}']}]}}
capability: {extends: read}
";

fn line(command: CliCommand, arguments: &Value) -> Result<Vec<String>, Refusal> {
    let world = World::new();
    let (spec, policy) = resolve(DOCUMENT);
    let tool = command.into_tool(spec, &policy, &world.host()).unwrap();
    let (_, recorder) = world.recorded(DOCUMENT, said(""));
    let tool = world.handlers(Arc::clone(&recorder) as _).runnable(tool);
    call(&tool, arguments)
        .map(|_| recorder.last().argv.into_iter().map(|part| part.replace(&world.at(""), "WS/")).collect())
}

fn log() -> CliCommand {
    CliCommand::new("git").cwd("$WORKSPACE").timeout_ms(5_000).args(|input| {
        vec![
            Arg::literal("log"),
            Arg::option_value("--max-count=", input.get("count")),
            Arg::literal("--"),
            Arg::operand(input.get("path")),
        ]
    })
}

#[test]
fn elements_say_what_they_are() {
    let made = line(log(), &json!({ "count": 3, "path": "docs/../src/main.rs" })).unwrap();
    assert_eq!(made, ["git", "log", "--max-count=3", "--", "WS/src/main.rs"]);
}

#[test]
fn values_stay_values() {
    let raw = |value: Value| CliCommand::new("git").args(move |_| vec![Arg::operand(&value)]);
    for bad in [json!("-x"), json!("a\nb"), json!(""), json!(null), json!(["a"]), json!({}), json!(-1)] {
        assert_eq!(line(raw(bad.clone()), &json!({})).unwrap_err().reason, Reason::ArgumentRefused, "{bad}");
    }
    let missing = line(log(), &json!({ "path": "src" })).unwrap_err();
    assert!(missing.message.contains("max-count"), "{missing:?}");
    let dashed = CliCommand::new("grep").args(|_| {
        vec![Arg::option_value("--regexp=", &json!("-x")).with_dashes(), Arg::operand(&json!("f"))]
    });
    assert_eq!(line(dashed, &json!({})).unwrap(), ["grep", "--regexp=-x", "--", "f"]);
}

#[test]
fn paths_are_judged_before() {
    let refusal = line(log(), &json!({ "count": 1, "path": "/etc/passwd" })).unwrap_err();
    assert_eq!(refusal.reason, Reason::PathOutsideRoots);
}
