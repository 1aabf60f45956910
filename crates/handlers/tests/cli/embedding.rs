//! Tests commands defined in code: the same checks apply to every element.

use std::{os::unix::fs::symlink, sync::Arc};

use serde_json::{Value, json};
use toolgate_gate::{Handlers as _, Reason, Refusal};
use toolgate_handlers::{Arg, CliCommand};

use crate::world::{World, call, resolve, said};

/// The document defines the arguments and grants; its own handler is not used.
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
fn elements_are_built_from_arguments() {
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
fn value_cannot_choose_its_option() {
    let glued = |command, option, value: &str| {
        let value = json!(value);
        line(CliCommand::new(command).args(move |_| vec![Arg::option_value(option, &value)]), &json!({}))
    };
    for (command, option, value) in [
        ("tar", "--", "checkpoint-action=exec=id"),
        ("git", "--upload", "-pack=touch x"),
        ("git", "--=", "x"),
        ("git", "-", "c"),
        ("git", "-", "5"),
        ("git", "-p", "c"),
        ("grep", "-r", "f/path"),
        ("grep", "-r", "5"),
        ("curl", "-s", "K/path"),
    ] {
        let refusal = glued(command, option, value).unwrap_err();
        assert_eq!(refusal.reason, Reason::ArgumentRefused);
        assert!(refusal.message.contains("choose options"), "{command} {option}: {refusal:?}");
    }
    for (command, option, value) in [
        ("git", "--max-count=", "x"),
        ("git", "-name=", "x"),
        ("git", "-n", "5"),
        ("grep", "-m", "x"),
        ("grep", "-rm", "x"),
    ] {
        assert_eq!(glued(command, option, value).unwrap(), [command, &format!("{option}{value}")]);
    }
    // Only the author knows, and not if the option is known to take no value.
    let vouched = |command, option| {
        let value = json!("x");
        let command = CliCommand::new(command);
        line(command.args(move |_| vec![Arg::option_value(option, &value).with_dashes()]), &json!({}))
    };
    assert_eq!(vouched("git", "-O").unwrap(), ["git", "-Ox"]);
    assert!(vouched("grep", "-r").is_err() && vouched("git", "--upload").is_err());
}

#[track_caller]
fn is_not_loaded(command: CliCommand, part: &str) {
    let (spec, policy) = resolve(DOCUMENT);
    let why = command.into_tool(spec, &policy, &World::new().host()).unwrap_err();
    assert!(why.contains(part), "{why}");
}

#[test]
fn shell_in_code_is_checked_like_a_shell() {
    is_not_loaded(CliCommand::new("bash"), "runs code of the agent");
    is_not_loaded(CliCommand::new("env"), "runs code of the agent");
    let world = World::new();
    let link = world.root().join("bin/lister");
    symlink(world.program("bash", "#!/bin/true\n", 0o755), &link).unwrap();
    is_not_loaded(CliCommand::new(link.display().to_string().leak()), "starts other programs");
}

#[test]
fn variables_and_standard_input_are_templates() {
    let world = World::new();
    let (spec, policy) = resolve(DOCUMENT);
    let command = CliCommand::new("cat").env("COUNT", "{count}").env("PAGER", "cat").stdin("{path}");
    let tool = command.into_tool(spec, &policy, &world.host()).unwrap();
    let (_, recorder) = world.recorded(DOCUMENT, said(""));
    let tool = world.handlers(Arc::clone(&recorder) as _).runnable(tool);
    call(&tool, &json!({ "count": 3, "path": "src/main.rs" })).unwrap();
    let order = recorder.last();
    let variable = |name: &str| order.env.iter().find(|(known, _)| known == name).unwrap().1.clone();
    assert_eq!((variable("COUNT").to_str(), variable("PAGER").to_str()), (Some("3"), Some("cat")));
    assert_eq!(order.stdin, world.at("src/main.rs").into_bytes());
    is_not_loaded(CliCommand::new("cat").env("TAR_OPTIONS", "{path}"), "choose what runs");
    is_not_loaded(CliCommand::new("cat").env("a-b", "x"), "not an environment variable");
    is_not_loaded(CliCommand::new("cat").stdin("{pth}"), "names no argument");
    is_not_loaded(CliCommand::new("cat").stdin("{path"), "not a valid template");
}

#[test]
fn command_line_comes_from_code_if_the_document_names_the_command() {
    let world = World::new();
    let (_, recorder) = world.recorded(DOCUMENT, said(""));
    let mut handlers = world.handlers(Arc::clone(&recorder) as _);
    handlers.commands.insert("log".to_owned(), log());
    let (spec, policy) = resolve(DOCUMENT);
    let why = handlers.prepare(&spec, &policy).err().unwrap();
    assert!(why.contains("`git`") && why.contains("document"), "{why}");
    let (spec, policy) = resolve(&DOCUMENT.replace("command: 'true'", "command: git"));
    let tool = handlers.prepare(&spec, &policy).unwrap();
    call(&tool, &json!({ "count": 3, "path": "src" })).unwrap();
    assert_eq!(recorder.last().argv[..3], ["git", "log", "--max-count=3"]);
}

#[test]
fn paths_are_checked_before_the_run() {
    let refusal = line(log(), &json!({ "count": 1, "path": "/etc/passwd" })).unwrap_err();
    assert_eq!(refusal.reason, Reason::PathOutsideRoots);
}
