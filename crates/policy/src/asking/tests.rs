use super::*;
use crate::{PolicySet, UserOverrides, rate, relaxations, resolve, testing};

const BY_DEFAULT: AskThreshold = AskThreshold::From(RiskLevel::L4);

fn resolved(document: &str) -> (ToolSpec, EffectivePolicy, RiskLevel) {
    let set = PolicySet::shipped().unwrap();
    let spec = testing::spec(document);
    let policy = resolve(&spec, &set, None).unwrap();
    let level = rate(&policy, &spec, &set).level;
    (spec, policy, level)
}

#[track_caller]
fn check(document: &str, gateway: AskThreshold, expect: &[&str]) {
    let (spec, policy, level) = resolved(document);
    let shown: Vec<String> = questions_of_every_call(&spec, &policy, level, gateway)
        .into_iter()
        .map(|question| format!("{} {} {}", question.source, question.setting, question.origin))
        .collect();
    assert_eq!(shown, expect, "{document}");
}

const L3: &str = "sandboxOverrides: {fileRead: true}";
const L4: &str = "sandboxOverrides: {networkMode: allowlist, hostsAllow: ['*']}";

#[test]
fn silent_document_asks_from_the_threshold_on() {
    check(testing::PLAIN, BY_DEFAULT, &[]);
    check(&testing::js(L3), BY_DEFAULT, &[]);
    check(&testing::js(L4), BY_DEFAULT, &["risk approval.askFrom built-in"]);
    check(&testing::js(L4), AskThreshold::Never, &[]);
    check(&testing::js(L3), AskThreshold::From(RiskLevel::L1), &["risk approval.askFrom built-in"]);
    check(testing::PLAIN, AskThreshold::Always, &["gateway approvals.ask_from configuration"]);
}

#[test]
fn stricter_profile_keeps_asking_from_l1() {
    let careful = testing::js(&format!("x-toolgate-profile: careful, {L3}"));
    let asks = ["risk approval.askFrom profile:careful"];
    check(&careful, BY_DEFAULT, &asks);
    check(&careful, AskThreshold::Never, &asks);
    check(&testing::js("x-toolgate-profile: careful"), BY_DEFAULT, &[]);
}

#[test]
fn stated_questions_ask_at_any_threshold() {
    let required = testing::js("humanInTheLoop: {mode: REQUIRED}");
    check(&required, AskThreshold::Never, &["human_in_the_loop humanInTheLoop tool"]);
    let level = testing::js("x-toolgate-capability: {approval: {level: ask}}");
    check(&level, AskThreshold::Never, &["capability approval.level tool"]);
}

/// The classification causes the question, and the answer names it.
#[test]
fn disabled_does_not_switch_off_the_question_of_a_classification() {
    let writes = testing::js("humanInTheLoop: {mode: DISABLED}, x-toolgate-classification: write");
    check(&writes, BY_DEFAULT, &["capability classification tool"]);
    let (spec, policy, level) = resolved(&writes);
    let questions = questions_of_every_call(&spec, &policy, level, BY_DEFAULT);
    assert!(questions[0].remedy.contains("approval.level: auto"), "{questions:?}");
    check(
        &testing::js("x-toolgate-classification: write, x-toolgate-capability: {approval: {level: auto}}"),
        BY_DEFAULT,
        &[],
    );
}

#[test]
fn conditional_questions_name_their_layer() {
    let document = testing::manifest(
        "cli: {command: cat, args: ['{path}']}",
        "params: [{name: path, type: STRING, required: true, testValue: a, description: a file}], capability: {extends: read}",
    );
    let (spec, policy, _) = resolved(&document);
    let shown: Vec<String> = questions_of_some_calls(&spec, &policy)
        .into_iter()
        .map(|question| format!("{} {}", question.source, question.origin))
        .collect();
    assert_eq!(shown, ["danger_pattern defaults:read"]);
}

#[test]
fn overrides_and_profiles_that_relax_are_reported() {
    let set = PolicySet::shipped().unwrap();
    let overrides = "tools: {t: {capability: {approval: {level: auto}}}}";
    let overrides = UserOverrides::parse(overrides, toolgate_spec::Format::Yaml).unwrap();
    let spec =
        testing::spec(&testing::js("x-toolgate-classification: write, x-toolgate-profile: read-only-files"));
    let policy = resolve(&spec, &set, Some(&overrides)).unwrap();
    let shown: Vec<String> = relaxations(&spec, &set, Some(&overrides), &policy)
        .into_iter()
        .map(|relaxed| format!("{}: {}", relaxed.by, relaxed.change.setting))
        .collect();
    assert!(shown.contains(&"overrides: approval.level".to_owned()), "{shown:?}");
    assert!(shown.contains(&"profile read-only-files: files.read".to_owned()), "{shown:?}");
}
