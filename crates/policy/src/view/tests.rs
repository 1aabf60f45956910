use super::*;
use crate::{PolicySet, resolve, testing};

#[track_caller]
fn policy(document: &str) -> EffectivePolicy {
    let set = PolicySet::shipped().unwrap();
    resolve(&testing::spec(document), &set, None).unwrap()
}

#[track_caller]
fn check(one: &str, other: &str, expect_same: bool) {
    let same = policy_digest(&policy(&testing::js(one))) == policy_digest(&policy(&testing::js(other)));
    assert_eq!(same, expect_same, "{one} / {other}");
}

/// Scripts depend on these names and their order: add, never rename.
#[test]
fn names_are_stable() {
    let names: Vec<&str> = policy(testing::PLAIN).settings().iter().map(|setting| setting.name).collect();
    assert_eq!(names, NAMES);
}

#[test]
fn digest_covers_enforced_settings() {
    check("{}", "sandboxOverrides: {networkMode: blocked, fileRead: false}", true);
    check("{}", "x-toolgate-profile: offline", true);
    check(
        "sandboxOverrides: {networkMode: allowlist, hostsAllow: [a.org]}",
        "sandboxOverrides: {networkMode: allowlist, hostsAllow: [A.ORG]}",
        true,
    );
    check("{}", "sandboxOverrides: {fileRead: true}", false);
    check("{}", "x-toolgate-capability: {labels: {acceptsUntrusted: false}}", false);
    check("{}", "x-toolgate-capability: {execution: {blockedPaths: [/x]}}", false);
}

/// Two notations of the same sets, and a different one.
#[test]
fn digest_ignores_the_order_of_lists() {
    for (one, other) in [
        ("sandboxOverrides: {networkMode: allowlist, hostsAllow: [A, B]}", "a.org b.org"),
        ("sandboxOverrides: {addAllowClasses: [A, B]}", "x.Y z.W"),
        ("sandboxOverrides: {addDenyClasses: [A, B]}", "x.Y z.W"),
        ("x-toolgate-capability: {network: {blockedHosts: [A, B]}}", "a.org b.org"),
        ("x-toolgate-capability: {network: {blockedPorts: [A, B]}}", "25 443"),
        ("x-toolgate-capability: {approval: {dangerPatterns: [A, B]}}", "one two"),
        ("x-toolgate-capability: {approval: {askForMethods: [A, B]}}", "PUT POST"),
        ("x-toolgate-capability: {execution: {blockedPaths: [A, B]}}", "/x /y"),
        ("x-toolgate-capability: {audit: {redactPatterns: [A, B], alertOn: [A, B]}}", "one two"),
        (
            "{sandboxOverrides: {fileRead: true}, x-toolgate-capability: {execution: {allowedPaths: [A, B]}}}",
            "/x /y",
        ),
    ] {
        let (first, second) = other.split_once(' ').unwrap();
        let written = |a: &str, b: &str| one.replace("[A, B]", &format!("[{a}, {b}]"));
        check(&written(first, second), &written(second, first), true);
        check(&written(first, second), &written(first, first), false);
    }
    let with_variables = |names: &str| {
        let more = format!("capability: {{execution: {{env: explicit, allowedEnvVars: [{names}]}}}}");
        policy_digest(&policy(&testing::manifest("cli: {command: date}", &more)))
    };
    assert_eq!(with_variables("HOME, LANG"), with_variables("LANG, HOME"));
    assert_ne!(with_variables("HOME, LANG"), with_variables("HOME, HOME"));
}

#[test]
fn settings_keep_the_order_in_which_they_were_resolved() {
    let policy =
        policy(&testing::js("sandboxOverrides: {networkMode: allowlist, hostsAllow: [b.org, a.org]}"));
    let hosts = policy.settings().into_iter().find(|setting| setting.name == "network.hosts").unwrap();
    assert_eq!(hosts.value, json!(["b.org", "a.org"]));
}

#[test]
fn digest_of_a_plain_tool_is_stable() {
    let digest = policy_digest(&policy(testing::PLAIN));
    assert!(digest.starts_with("sha256:") && digest.len() == 7 + 64, "{digest}");
    assert_eq!(digest, PLAIN_DIGEST, "a change here sends every tool back to its test run");
}

#[test]
fn every_setting_is_documented() {
    let page = include_str!("../../../../docs/settings.md");
    for name in NAMES {
        assert!(page.contains(&format!("|`{name}`|")), "{name}");
    }
}

const PLAIN_DIGEST: &str = "sha256:aab2204727d92f020ed3a1f61513868bb423edeab1f48ac9a2afbcc9a5fa7b70";

const NAMES: [&str; 43] = [
    "profile",
    "classification",
    "destructive",
    "javaInterop",
    "classes.allow",
    "classes.deny",
    "network.mode",
    "network.hosts",
    "network.askForUnknownHosts",
    "network.blockedHosts",
    "network.blockedPorts",
    "network.blockPrivateIPs",
    "network.blockMetadata",
    "network.proxyOnApproval",
    "files.read",
    "files.write",
    "files.basePath",
    "files.allowedPaths",
    "files.blockedPaths",
    "approval.level",
    "approval.askFrom",
    "approval.dangerPatterns",
    "approval.askForMethods",
    "approval.trustAfterApproval",
    "data.sensitivity",
    "data.canReadSecrets",
    "data.canLeakData",
    "data.sanitizeOutput",
    "execution.sandbox",
    "execution.timeoutMs",
    "execution.maxOutputBytes",
    "execution.maxStatements",
    "execution.memoryBytes",
    "execution.env",
    "execution.allowedEnvVars",
    "audit.logArgs",
    "audit.logOutput",
    "audit.redactPatterns",
    "audit.alertOn",
    "audit.useSharedSecretDetector",
    "labels.outputTrust",
    "labels.outputDataClass",
    "labels.acceptsUntrusted",
];

/// Passes are bound to digests, so their form never changes: RFC 8785, by a general serializer.
#[test]
fn digest_is_of_canonical_json() {
    let documents = [
        testing::PLAIN.to_owned(),
        testing::js(
            "sandboxOverrides: {networkMode: allowlist, hostsAllow: [b.example, a.example, b.example]}",
        ),
        testing::js(
            r#"{sandboxOverrides: {fileRead: true}, x-toolgate-capability: {execution: {allowedPaths: ["/\u00e9\"x", "/y"]}}}"#,
        ),
    ];
    for document in &documents {
        let policy = policy(document);
        let values: serde_json::Map<String, Value> = policy
            .settings()
            .into_iter()
            .filter(|setting| setting.name != "profile")
            .map(|setting| (setting.name.to_owned(), sorted(setting.value)))
            .collect();
        let canonical = serde_json_canonicalizer::to_vec(&Value::Object(values)).unwrap();
        let mut digest = "sha256:".to_owned();
        for byte in Sha256::digest(&canonical) {
            write!(digest, "{byte:02x}").unwrap();
        }
        assert_eq!(policy_digest(&policy), digest);
    }
    for value in
        [json!(9_007_199_254_740_993_u64), json!(u64::MAX), json!(1.5), json!({ "b": 1, "a": [2, 1] })]
    {
        assert_eq!(canonical(&value), serde_json_canonicalizer::to_string(&value).unwrap(), "{value}");
    }
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Array(mut entries) => {
            entries.sort_by_cached_key(Value::to_string);
            entries.dedup();
            Value::Array(entries)
        }
        single => single,
    }
}
