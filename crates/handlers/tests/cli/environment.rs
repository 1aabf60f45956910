//! Tests which variables a command gets.

use std::{collections::BTreeMap, ffi::OsString, sync::Arc};

use serde_json::{Value, json};
use toolgate_gate::{Handlers as _, Reason};
use toolgate_handlers::OwnVariables;
use toolgate_sandbox::Ending;

use crate::world::{Unjailed, World, call, ended, resolve, said};

fn manifest(execution: &str, env: &str) -> String {
    format!(
        "
name: tried
description: Is tried. Returns text.
classification: read
params: [{{name: who, type: STRING, required: false, testValue: x}}]
staticVariables:
  - key: Bearer ${{SERVICE_KEY}}
  - place: here
handler: {{cli: {{command: cat, stdin: '{{who}}', env: {{{env}}}}}}}
capability: {{execution: {{{execution}}}}}
"
    )
}

fn world() -> World {
    let mut world = World::new();
    for (name, value) in [
        ("PATH", "/evil/bin"),
        ("LANG", "de_DE"),
        ("EDITOR_NAME", "vi"),
        ("LD_PRELOAD", "/evil.so"),
        ("http_proxy", "http://evil"),
        ("GITHUB_TOKEN", "t"),
        ("DB_PASS", "p"),
        ("MONKEY", "banana"),
        ("STORE", "postgres://u:pw@db/x"),
        ("TOOLGATE_STATE", "/state"),
        ("SERVICE_KEY", "s3cr3t-key"),
    ] {
        world.environment.push((name.to_owned(), OsString::from(value)));
    }
    world.secrets.insert("SERVICE_KEY".to_owned(), "s3cr3t-key".to_owned());
    world
}

#[track_caller]
fn variables(manifest: &str, arguments: &Value) -> BTreeMap<String, String> {
    let order = world().order(manifest, arguments);
    order.env.into_iter().map(|(name, value)| (name, value.into_string().unwrap())).collect()
}

fn names(variables: &BTreeMap<String, String>) -> Vec<&str> {
    variables.keys().map(String::as_str).collect()
}

#[test]
fn clean_environment_has_a_few_fixed_variables() {
    let clean = variables(&manifest("env: clean", "WHO: '{who}'"), &json!({ "who": "me" }));
    assert_eq!(names(&clean), ["HOME", "LANG", "PATH", "TERM", "TMPDIR", "WHO"]);
    assert_eq!(clean["PATH"], "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    assert_eq!((clean["LANG"].as_str(), clean["TERM"].as_str()), ("C.UTF-8", "dumb"));
}

#[test]
fn explicit_environment_has_listed_variables_without_secrets() {
    let explicit =
        variables(&manifest("env: explicit, allowedEnvVars: [LANG, MONKEY, ABSENT]", "A: b"), &json!({}));
    assert_eq!(names(&explicit), ["A", "LANG", "MONKEY"]);
    for secret in ["GITHUB_TOKEN", "DB_PASS", "SERVICE_KEY"] {
        let why =
            world().load(&manifest(&format!("env: explicit, allowedEnvVars: [{secret}]"), "")).unwrap_err();
        assert!(why.contains(secret) && why.contains("static variable"), "{why}");
    }
    let why = world().load(&manifest("env: explicit, allowedEnvVars: [LD_PRELOAD]", "")).unwrap_err();
    assert!(why.contains("what code runs"), "{why}");
}

#[test]
fn inherited_environment_excludes_secrets_and_loader_variables() {
    let inherited = variables(&manifest("env: inherit", ""), &json!({}));
    assert_eq!(names(&inherited), ["EDITOR_NAME", "LANG", "MONKEY", "PATH"]);
}

/// `secret_env: MONKEY`: the name does not look like a secret, but with the value a tool could sign for any caller.
#[test]
fn own_variables_reach_no_command() {
    let mut world = world();
    world.own = OwnVariables::named(["MONKEY".to_owned()]);
    let inherited = world.order(&manifest("env: inherit", ""), &json!({}));
    let inherited: Vec<String> = inherited.env.into_iter().map(|(name, _)| name).collect();
    assert_eq!(inherited, ["EDITOR_NAME", "LANG", "PATH"]);
    for own in ["MONKEY", "TOOLGATE_STATE"] {
        let why = world.load(&manifest(&format!("env: explicit, allowedEnvVars: [{own}]"), "")).unwrap_err();
        assert!(why.contains(&format!("`{own}`")) && why.contains("another variable"), "{why}");
        assert!(!why.contains("static variable"), "it would be refused there too: {why}");
    }
    world.own = OwnVariables::Unknown;
    assert_eq!(world.order(&manifest("env: inherit", ""), &json!({})).env, []);
}

/// `STRIPE_LIVE=sk_live_…`: the name does not look like a secret.
#[test]
fn variable_is_secret_by_its_value() {
    let key = format!("sk_{}_{}", "live", "Zq4T9xKe2LmV7cRw1YbN8sHd");
    let mut world = world();
    world.environment.push(("STRIPE_LIVE".to_owned(), OsString::from(&key)));
    let names = |manifest: &str| -> Vec<String> {
        world.order(manifest, &json!({})).env.into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names(&manifest("env: inherit", "")), ["EDITOR_NAME", "LANG", "MONKEY", "PATH"]);
    let listed = manifest("env: explicit, allowedEnvVars: [LANG, STRIPE_LIVE]", "");
    assert_eq!(names(&listed), ["LANG"]);
    let (spec, policy) = resolve(&listed);
    let handlers = world.handlers(Arc::new(Unjailed));
    let why = handlers.prepare(&spec, &policy).err().unwrap();
    assert!(why.contains("STRIPE_LIVE") && why.contains("static variable") && !why.contains(&key), "{why}");
}

#[test]
fn variable_of_an_absent_value_is_left_out() {
    let without = variables(&manifest("env: clean", "WHO: '{who}', PLACE: '{place}'"), &json!({}));
    assert_eq!(without.get("WHO"), None);
    assert_eq!(without["PLACE"], "here");
}

#[test]
fn secrets_reach_only_the_command() {
    let tool = manifest("env: clean", "KEY: '{key}'");
    assert_eq!(variables(&tool, &json!({}))["KEY"], "Bearer s3cr3t-key");
    let world = world();
    let (out, _) = world.recorded(&tool, said("the key is s3cr3t-key\n"));
    let report = call(&out, &json!({})).unwrap();
    assert_eq!(report.outcome.unwrap().unwrap(), json!("the key is ***\n"));
    let (fails, _) = world.recorded(&tool, ended(Ending::Exited(1), "", "bad key \x1b[1ms3cr3t\x1b[0m-key"));
    let report = call(&fails, &json!({})).unwrap();
    assert_eq!(report.outcome.unwrap_err().message, "`cat` ended with exit code 1: bad key ***");
    assert_eq!(report.console, [("error", "bad key ***".to_owned())]);
}

/// A caller may choose what a command writes, and how long it is.
#[test]
fn guess_of_a_secret_in_output_gets_the_same_answer_as_any_other_text() {
    let tool = manifest("env: clean", "KEY: '{key}'");
    let world = world();
    let answer = |ending: &Ending, text: &str, guess: &str| {
        let (tool, _) = world.recorded(&tool, ended(ending.clone(), "", text));
        let report = call(&tool, &json!({})).unwrap();
        let failure = report.outcome.unwrap_err();
        format!("{} {:?} {:?}", failure.message, failure.unredacted, report.console).replace(guess, "GUESS")
    };
    let padding = "x".repeat((64 << 10) - "s3cr3t".len());
    for ending in [Ending::Exited(1), Ending::TimedOut, Ending::Signalled(9), Ending::OutputTooLarge] {
        for before in ["", "one line\n", "not ", padding.as_str()] {
            for after in ["", "…", "… and more", "\n"] {
                let [right, wrong] = ["s3cr3t", "s3cr4t"]
                    .map(|guess| answer(&ending, &format!("{before}{guess}{after}"), guess));
                assert_eq!(right, wrong, "{ending:?} {before:.20} {after}");
            }
        }
    }
}

/// The gateway killed the command while it wrote, or truncated its output.
#[test]
fn secret_that_is_cut_off_in_output_is_not_shown_in_part() {
    let tool = manifest("env: clean", "KEY: '{key}'");
    let world = world();
    let full = format!("{}\n{}s3cr3t-k", "first line", "x".repeat((64 << 10) - 19));
    for (ending, text) in [(Ending::TimedOut, "first line\nkey s3cr3t-k"), (Ending::Exited(1), full.as_str())]
    {
        let (tool, _) = world.recorded(&tool, ended(ending, "", text));
        let report = call(&tool, &json!({})).unwrap();
        let failure = report.outcome.unwrap_err();
        let shown = format!("{} {:?} {:?}", failure.message, failure.unredacted, report.console);
        assert!(shown.contains("first line") && !shown.contains("s3cr3t"), "{shown:.300}");
    }
}

#[test]
fn missing_secret_prevents_the_run() {
    let mut world = world();
    world.secrets.clear();
    let (tool, recorder) = world.recorded(&manifest("env: clean", "KEY: '{key}'"), said(""));
    let failure = call(&tool, &json!({})).unwrap().outcome.unwrap_err();
    assert_eq!(failure.reason, Reason::MissingSecret);
    assert!(failure.message.contains("SERVICE_KEY"));
    assert!(recorder.is_unused());
}

#[test]
fn stdin_and_variables_allow_lines_but_no_control_characters() {
    let tool = manifest("env: clean", "WHO: '{who}'");
    let order = world().order(&tool, &json!({ "who": "a\n\tb\r\n" }));
    assert_eq!(order.stdin, b"a\n\tb\r\n");
    for bad in ["a\0b", "\x1b[1m", "\u{9b}1m", "\x07"] {
        let refusal = world().line(&tool, &json!({ "who": bad })).unwrap_err();
        assert_eq!(refusal.reason, Reason::ArgumentRefused);
    }
}

#[test]
fn value_starts_no_option_in_a_variable() {
    let attack = json!({ "who": "--checkpoint=1 --checkpoint-action=exec=id" });
    for env in ["WHO: '{who}'", "WHO: 'a={who}'", "WHO: '-v {who}'"] {
        let tool = manifest("env: clean", env).replace("required: false", "required: true");
        let refusal = world().line(&tool, &attack).unwrap_err();
        assert_eq!(refusal.reason, Reason::ArgumentRefused, "{env}");
        assert!(refusal.message.contains("begins with `-`"), "{refusal:?}");
    }
    // Nor does a word inside a value.
    for (env, who) in [
        ("WHO: 'base {who}'", " -b"),
        ("WHO: 'base {who}'", "a --danger"),
        ("WHO: '{who}'", "a\n-b"),
        ("WHO: '{who}'", "a\t-b"),
        ("WHO: 'x{who}'", "a -b"),
    ] {
        let tool = manifest("env: clean", env).replace("required: false", "required: true");
        let refusal = world().line(&tool, &json!({ "who": who })).unwrap_err();
        assert!(refusal.message.contains("begins with `-`"), "{env} {who}: {refusal:?}");
    }
    let tool = manifest("env: clean", "WHO: '{who}'").replace("required: false", "required: true");
    assert_eq!(variables(&tool, &json!({ "who": "well-known a=-b" }))["WHO"], "well-known a=-b");
    // After text of the author a value starts nothing, standard input is not a variable, and a number is not an
    // option.
    let tool = manifest("env: clean", "WHO: 'x{who}'").replace("required: false", "required: true");
    assert_eq!(variables(&tool, &json!({ "who": "-y" }))["WHO"], "x-y");
    assert_eq!(world().order(&manifest("env: clean", ""), &json!({ "who": "-y" })).stdin, b"-y");
    let number = manifest("env: clean", "WHO: '{who}'")
        .replace("STRING", "INTEGER")
        .replace("testValue: x", "testValue: '1'");
    assert_eq!(variables(&number, &json!({ "who": -5 }))["WHO"], "-5");
}
