//! Overrides for single tools work, and those without a matching tool are reported.

use std::fs;

use serde_json::{Value, json};

use crate::place::{Place, Serving, token, until};

fn say(place: &Place, overrides: &str) {
    let draft = place.path().join("overrides.draft");
    fs::write(&draft, overrides).unwrap();
    fs::rename(draft, place.path().join("overrides.yaml")).unwrap();
}

fn place() -> Place {
    let place = Place::new();
    place.configure("approvals:\n  ask_from: L1\npolicy:\n  overrides: overrides.yaml\n");
    place.write_tool("reads", &json!({ "sandboxOverrides": { "fileRead": true } }));
    place
}

fn denial(answer: &Value) -> &Value {
    &answer["_meta"]["dev.toolgate/denial"]["code"]
}

/// The document sets no mode, and its level would need approval.
#[test]
fn override_auto_works_like_in_the_document() {
    let place = place();
    say(&place, "tools: {word_count: {capability: {approval: {level: ask}}}}\n");
    place.ok(&["publish", "--yes"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    let call = |tool: &str| serving.call(&token, tool, &json!({ "text": "hi" }));
    assert_eq!(denial(&call("reads")), "decide.approval_pending");
    assert_eq!(denial(&call("word_count")), "decide.approval_pending");
    say(&place, "tools: {reads: {capability: {approval: {level: auto}}}}\n");
    // The pass is for another policy.
    place.ok(&["publish", "--yes"]);
    until("the operator's word counts", || call("reads")["isError"] == false);
    serving.stop();
}

#[test]
fn override_without_a_matching_tool_is_reported() {
    let place = place();
    say(&place, "tools: {raeds: {capability: {approval: {level: always}}}}\n");
    let warning = "overrides.yaml: no tool is called `raeds`, so its override has no effect";
    assert!(place.ok(&["list"]).contains(warning));
    let listed: Value = serde_json::from_str(&place.ok(&["list", "--format", "json"])).unwrap();
    assert_eq!(listed["problems"], json!([]), "a tool may be gone before its override is");
    assert!(listed["unusedSettings"][0]["problem"].as_str().unwrap().contains("`raeds`"), "{listed}");
    let doctor = place.toolgate(&["doctor"]);
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("`raeds`"), "{doctor:?}");
    let serving = Serving::start(&place);
    say(
        &place,
        "tools: {raeds: {capability: {approval: {level: ask}}}, reads: {capability: {approval: {level: ask}}}}\n",
    );
    assert!(serving.wait_for("`raeds`").contains(warning), "after a reload");
    serving.stop();
}

/// Caller names have a prefix, so a bare name never matches.
#[test]
fn policy_with_an_impossible_caller_is_reported() {
    let place = Place::new();
    place.configure("policy:\n  cedar: [rules.cedar]\n");
    let rules = |caller: &str| {
        let rule = format!("permit (principal == Caller::\"{caller}\", action, resource);\n");
        fs::write(place.path().join("rules.draft"), rule).unwrap();
        fs::rename(place.path().join("rules.draft"), place.path().join("rules.cedar")).unwrap();
    };
    rules("alice");
    let listed = place.ok(&["list"]);
    assert!(
        listed.contains("no caller is named `alice`") && listed.contains("write `token:alice`"),
        "{listed}"
    );
    rules("token:alice");
    assert!(!place.ok(&["list"]).contains("no caller is named"));
    let serving = Serving::start(&place);
    rules("bob");
    assert!(serving.wait_for("no caller is named").contains("`bob`"), "after a reload");
    serving.stop();
}
