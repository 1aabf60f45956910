//! Runs every hostile script of `tests/attacks/js` in the real gateway. Each must end as its header says, and the gateway
//! must still serve.

use std::{collections::HashMap, fs, path::PathBuf};

use serde_json::{Value, json};
use toolgate_gate::{EffectEntry, Reason, RunFailure, RunReport};
use toolgate_handlers::FUEL_PER_STATEMENT;

use crate::gateway::{Gateway, Secret, document, ground};

#[test]
fn hostile_scripts_end_as_their_headers_say() {
    let gateway = Gateway::new();
    let mut failures = Vec::new();
    let only = std::env::var("SCRIPT").unwrap_or_default();
    let scripts = scripts();
    assert!(scripts.len() >= 80, "{} scripts", scripts.len());
    for (name, text) in scripts.iter().filter(|(name, _)| name.contains(&only)) {
        if let Err(complaint) = check(&gateway, text) {
            failures.push(format!("{name}: {complaint}"));
        }
    }
    gateway.still_serves();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), scripts.len(), failures.join("\n"));
}

#[test]
fn every_script_has_its_row_in_the_ledger() {
    let ledger = fs::read_to_string(root().join("tests/attacks/ledger/javascript.yaml")).unwrap();
    for (name, _) in scripts() {
        assert!(ledger.contains(&name), "tests/attacks/ledger/javascript.yaml has no row for {name}");
    }
}

#[test]
fn script_that_never_ran_fails_the_check() {
    let gateway = Gateway::new();
    let header = "// grants: none\n// expect: never CANARY\n";
    assert!(check(&gateway, &format!("{header}return 1;")).is_ok());
    assert!(check(&gateway, &format!("{header}return (;")).is_err());
}

/// Includes quotes and backslashes, which debug output would escape.
#[test]
fn script_that_leaks_the_secret_fails_the_check() {
    let gateway = Gateway::new();
    for code in [
        r#"return 'a"b\\c';"#,
        r#"return { 'a"b\\c': 1 };"#,
        r#"console.log('a"b\\c');"#,
        r#"throw 'a"b\\c';"#,
        r#"throw new Error('a"b\\c');"#,
    ] {
        let script = format!("// grants: none\n// expect: never a\"b\\c\n{code}");
        assert!(check(&gateway, &script).unwrap_err().contains("came out"), "{code}");
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn scripts() -> Vec<(String, String)> {
    let mut scripts: Vec<(String, String)> = fs::read_dir(root().join("tests/attacks/js"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "js"))
        .map(|path| {
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap())
        })
        .collect();
    scripts.sort();
    scripts
}

fn check(gateway: &Gateway, text: &str) -> Result<(), String> {
    let header: HashMap<&str, &str> = text
        .lines()
        .map_while(|line| line.strip_prefix("// "))
        .filter_map(|line| line.split_once(": "))
        .collect();
    let expect = header.get("expect").ok_or("no `expect` line")?;
    let mut tool = document(text);
    grant(&mut tool, header.get("grants").copied().unwrap_or("none"))?;
    let secret = header.get("secret").and_then(|secret| secret.split_once('='));
    if let Some((name, _)) = secret {
        tool["staticVariables"] = json!([{ name: format!("${{{name}}}") }]);
    }
    let ground = ground();
    let tool = Gateway::tool_at(&tool, &ground.path().join("ws"));
    let tool = tool.with_limits(|limits| {
        for limit in header.get("limits").copied().unwrap_or_default().split_whitespace() {
            let (name, value) = limit.split_once('=').unwrap();
            let value: u64 = value.parse().unwrap();
            match name {
                "timeout" => limits.timeout_ms = u32::try_from(value).unwrap(),
                "memory" => limits.memory_bytes = value << 20,
                "statements" => limits.fuel = value.saturating_mul(FUEL_PER_STATEMENT),
                other => panic!("unknown limit {other}"),
            }
        }
    });
    let (name, value) = secret.unwrap_or(("NONE", ""));
    let report = gateway.run(&tool, &json!({}), &Secret(name.to_owned(), value.to_owned()));
    judge(expect, &report)
}

fn grant(tool: &mut Value, grants: &str) -> Result<(), String> {
    let mut overrides = json!({});
    let mut hosts = Vec::new();
    for grant in grants.split(',').map(str::trim) {
        match grant {
            "none" => {}
            "read" => overrides["fileRead"] = json!(true),
            "write" => overrides["fileWrite"] = json!(true),
            "fetch:strict" => overrides["networkMode"] = json!("strict"),
            "fetch:open" => overrides["networkMode"] = json!("open"),
            other => match other.strip_prefix("fetch:allow=") {
                Some(host) => {
                    overrides["networkMode"] = json!("allowlist");
                    hosts.extend((!host.is_empty()).then(|| host.to_owned()));
                    overrides["hostsAllow"] = json!(hosts);
                }
                // Another host for the allowlist.
                None if !hosts.is_empty() => {
                    hosts.push(other.to_owned());
                    overrides["hostsAllow"] = json!(hosts);
                }
                None => return Err(format!("unknown grant `{other}`")),
            },
        }
    }
    if overrides != json!({}) {
        tool["sandboxOverrides"] = overrides;
    }
    Ok(())
}

/// Failures that a script cannot cause. They mean that the attack was never tried.
fn never_ran(code: Reason) -> bool {
    matches!(
        code,
        Reason::CodeInvalid
            | Reason::MissingSecret
            | Reason::ArgumentsTooLarge
            | Reason::Busy
            | Reason::WorkerUnavailable
            | Reason::WorkerDied
            | Reason::WorkerMisbehaved
    )
}

fn judge(expect: &str, report: &RunReport) -> Result<(), String> {
    let told = || Err(format!("expected `{expect}`, got {:?}", report.outcome));
    if let Some(secret) = expect.strip_prefix("never ") {
        if report.outcome.as_ref().is_err_and(|failure| never_ran(failure.reason)) {
            return Err(format!("the script itself said nothing: {report:?}"));
        }
        return match texts(report).iter().find(|text| text.contains(secret)) {
            Some(text) => Err(format!("`{secret}` came out: {text}")),
            None => Ok(()),
        };
    }
    if let Some(value) = expect.strip_prefix("returns ") {
        let value: Value = serde_json::from_str(value).map_err(|error| error.to_string())?;
        return match &report.outcome {
            Ok(Some(returned)) if *returned == value => Ok(()),
            _ => told(),
        };
    }
    let Err(failure) = &report.outcome else { return told() };
    if let Some(what) = expect.strip_prefix("throws ") {
        let helper = failure.helper.as_deref().map(|[kind, _, reason]| format!("{kind} {reason}"));
        return if helper.as_deref() == Some(what) { Ok(()) } else { told() };
    }
    if expect.split('|').any(|code| code == failure.reason.code()) { Ok(()) } else { told() }
}

/// All texts of a report, unescaped. Debug output would escape quotes.
fn texts(report: &RunReport) -> Vec<String> {
    let RunReport {
        outcome,
        console,
        console_dropped: _,
        effects,
        effects_dropped: _,
        usage: _,
        layers: _,
        refused,
        refused_dropped: _,
        withheld: _,
        worker: _,
    } = report;
    let mut texts = Vec::new();
    match outcome {
        Ok(Some(value)) => gather(value, &mut texts),
        Ok(None) => {}
        Err(RunFailure { reason: _, message, stack, helper, unredacted: _ }) => {
            texts.push(message.clone());
            texts.extend(stack.iter().cloned());
            if let Some(helper) = helper {
                texts.extend(helper.iter().cloned());
            }
        }
    }
    texts.extend(console.iter().map(|(_, text)| text.clone()));
    texts.extend(refused.iter().cloned());
    for EffectEntry { kind: _, what, target, to, outcome, bytes: _, elapsed: _ } in effects {
        texts.extend([what, target, outcome].map(String::clone));
        texts.extend(to.clone());
    }
    texts
}

fn gather(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| gather(item, texts)),
        Value::Object(members) => {
            for (name, member) in members {
                texts.push(name.clone());
                gather(member, texts);
            }
        }
        other => texts.push(other.to_string()),
    }
}
