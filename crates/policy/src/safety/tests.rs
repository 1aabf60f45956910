use super::*;
use crate::{PolicySet, resolve, testing};

#[track_caller]
fn check(document: &str, expect: &[&str]) {
    let set = PolicySet::shipped().unwrap();
    let spec = testing::spec(document);
    let policy = resolve(&spec, &set, None).unwrap();
    let shown: Vec<String> = safety_mismatch(&spec, &policy)
        .iter()
        .map(|finding| format!("{} {}: {}", finding.code.name(), finding.at, finding.message))
        .collect();
    assert_eq!(shown, expect);
}

#[test]
fn safety_block_is_complete_and_ordered() {
    let set = PolicySet::shipped().unwrap();
    let spec = testing::spec(&testing::js(
        "{category: WEB, sandboxOverrides: {networkMode: allowlist, hostsAllow: [API.upbit.com]}}",
    ));
    let policy = resolve(&spec, &set, None).unwrap();
    assert_eq!(
        safety_to_json(&tool_safety(&spec, &policy, ["safety.http/v1"])).to_string(),
        r#"{"version":"1.0","runtime":{"id":"toolgate/quickjs","minVersion":"0.1.0","ecmaVersion":"2024","javaInterop":false,"helpers":["safety.http/v1"],"console":true},"category":{"source":"user","id":"WEB"},"capabilities":{"network":{"mode":"allowlist","hosts":["api.upbit.com"]},"fileRead":false,"fileWrite":false}}"#
    );
    let command = testing::spec(&testing::manifest("cli: {command: date}", "{}"));
    let policy = resolve(&command, &set, None).unwrap();
    assert_eq!(
        safety_to_json(&tool_safety::<&str>(&command, &policy, [])).to_string(),
        r#"{"version":"1.0","runtime":{"id":"toolgate/cli","minVersion":"0.1.0","javaInterop":false,"helpers":[],"console":false},"category":{"source":"user","id":"CUSTOM"},"capabilities":{"network":{"mode":"blocked","hosts":[]},"fileRead":false,"fileWrite":false}}"#
    );
}

#[test]
fn false_claim_is_reported() {
    check(testing::PLAIN, &[]);
    check(
        &testing::js(
            "{sandboxOverrides: {networkMode: allowlist, hostsAllow: [a.org, b.org]}, toolSafety: {capabilities: \
             {network: {mode: allowlist, hosts: [B.org, a.org]}, fileRead: false, fileWrite: null}}}",
        ),
        &[],
    );
    check(
        &testing::js(
            "{toolSafety: {runtime: {javaInterop: true}, capabilities: {network: {mode: allowlist, hosts: [a.org]}, \
             fileRead: true, fileWrite: true}}}",
        ),
        &[
            "LINT_SAFETY_MISMATCH /toolSafety/runtime/javaInterop: claims `true`, but resolves to `false`; there are no host classes",
            "LINT_SAFETY_MISMATCH /toolSafety/capabilities/network/mode: claims `allowlist`, but resolves to `blocked`",
            "LINT_SAFETY_MISMATCH /toolSafety/capabilities/network/hosts: claims `a.org`, but resolves to no hosts",
            "LINT_SAFETY_MISMATCH /toolSafety/capabilities/fileRead: claims `true`, but resolves to `false`",
            "LINT_SAFETY_MISMATCH /toolSafety/capabilities/fileWrite: claims `true`, but resolves to `false`",
        ],
    );
}
