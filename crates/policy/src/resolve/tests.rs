mod network;
mod older_form;

use toolgate_spec::{Format, check_text};

use super::*;
use crate::testing;

/// The settings that differ from those of the same kind of tool without policy settings, with their origins.
#[track_caller]
fn check(document: &str, expect: &[&str]) {
    check_with(document, "", &[], expect);
}

#[track_caller]
fn check_with(document: &str, user: &str, profiles: &[(&str, &str)], expect: &[&str]) {
    let all = PolicySet::SHIPPED_PROFILES.iter().chain(profiles).copied();
    let set = PolicySet::new(PolicySet::SHIPPED_BASELINE, all).unwrap();
    let user = (!user.is_empty()).then(|| UserOverrides::parse(user, Format::Yaml).unwrap());
    let spec = testing::spec(document);
    let plain = match &spec.body {
        Body::JavaScript { .. } => testing::spec(testing::PLAIN),
        Body::Handler(_) => testing::spec(CLI),
    };
    let shown: Vec<String> = match resolve(&spec, &set, user.as_ref()) {
        Ok(policy) => {
            let ground = resolve(&plain, &set, None).unwrap().settings();
            let differs =
                policy.settings().into_iter().zip(ground).filter(|(this, that)| this.value != that.value);
            differs.map(|(this, _)| format!("{} = {} ({})", this.name, this.value, this.origin)).collect()
        }
        Err(findings) => findings
            .iter()
            .map(|finding| format!("{} {}: {}", finding.code.name(), finding.at, finding.message))
            .collect(),
    };
    assert_eq!(shown, expect, "\n{document}");
}

/// The program determines the memory of a command; a script has the heap of the sandbox.
#[test]
fn command_has_its_own_memory_limit() {
    let set = PolicySet::shipped().unwrap();
    let memory = |document: &str| {
        let policy = resolve(&testing::spec(document), &set, None).unwrap();
        (policy.execution.memory_bytes.value >> 20, policy.execution.memory_bytes.origin)
    };
    assert_eq!(memory(testing::PLAIN), (64, SettingOrigin::Baseline));
    assert_eq!(memory(CLI), (512, SettingOrigin::Baseline));
}

#[test]
fn document_without_settings_reaches_nothing() {
    let set = PolicySet::shipped().unwrap();
    let shown: Vec<String> = resolve(&testing::spec(testing::PLAIN), &set, None)
        .unwrap()
        .settings()
        .iter()
        .filter(|setting| !setting.name.starts_with("classes."))
        .map(|setting| format!("{} = {} ({})", setting.name, setting.value, setting.origin))
        .collect();
    assert_eq!(
        shown,
        [
            "profile = null (built-in)",
            "classification = \"read\" (built-in)",
            "destructive = false (built-in)",
            "javaInterop = false (built-in)",
            "network.mode = \"blocked\" (baseline)",
            "network.hosts = [] (baseline)",
            "network.askForUnknownHosts = false (built-in)",
            "network.blockedHosts = [] (built-in)",
            "network.blockedPorts = [] (built-in)",
            "network.blockPrivateIPs = true (built-in)",
            "network.blockMetadata = true (built-in)",
            "network.proxyOnApproval = false (built-in)",
            "files.read = false (baseline)",
            "files.write = false (baseline)",
            "files.basePath = \"$WORKSPACE\" (baseline)",
            "files.allowedPaths = [] (baseline)",
            "files.blockedPaths = [] (built-in)",
            "approval.level = \"auto\" (built-in)",
            "approval.askFrom = \"gateway\" (built-in)",
            "approval.dangerPatterns = [] (built-in)",
            "approval.askForMethods = [] (built-in)",
            "approval.trustAfterApproval = false (built-in)",
            "data.sensitivity = \"medium\" (built-in)",
            "data.canReadSecrets = false (built-in)",
            "data.canLeakData = false (baseline)",
            "data.sanitizeOutput = true (built-in)",
            "execution.sandbox = \"process\" (built-in)",
            "execution.timeoutMs = 30000 (baseline)",
            "execution.maxOutputBytes = 1000000 (built-in)",
            "execution.maxStatements = 500000 (baseline)",
            "execution.memoryBytes = 67108864 (baseline)",
            "execution.env = \"clean\" (built-in)",
            "execution.allowedEnvVars = [] (built-in)",
            "audit.logArgs = false (built-in)",
            "audit.logOutput = false (built-in)",
            "audit.redactPatterns = [] (built-in)",
            "audit.alertOn = [] (built-in)",
            "audit.useSharedSecretDetector = true (built-in)",
            "labels.outputTrust = \"untrusted\" (built-in)",
            "labels.outputDataClass = \"internal\" (built-in)",
            "labels.acceptsUntrusted = true (built-in)",
        ]
    );
}

#[test]
fn class_lists_are_inherited_plus_added_minus_removed() {
    check(
        &testing::js(
            "sandboxOverrides: {addAllowClasses: [a.B, c.D], removeAllowClasses: [c.D, java.text.*], removeDenyClasses: [java.lang.Thread]}",
        ),
        &[
            r#"classes.allow = ["java.lang.*","java.math.*","java.time.*","java.util.*","a.B"] (baseline+tool)"#,
            r#"classes.deny = ["java.lang.System","java.lang.Runtime","java.lang.ProcessBuilder","java.lang.Process","java.lang.Class","java.lang.invoke.*","java.lang.reflect.*","java.lang.ThreadGroup","java.lang.ClassLoader","java.util.ServiceLoader","java.util.spi.*"] (baseline)"#,
        ],
    );
}

#[test]
fn class_both_allowed_and_denied_is_rejected() {
    check(
        &testing::js(
            "sandboxOverrides: {addAllowClasses: [java.lang.System], addDenyClasses: [java.util.*]}",
        ),
        &["RESOLVER_REJECT /sandboxOverrides: both allowed and denied: `java.util.*`, `java.lang.System`"],
    );
    let profiles = [("clash", "addDenyClasses: [java.util.*]")];
    check_with(
        &testing::js("x-toolgate-profile: clash"),
        "",
        &profiles,
        &["RESOLVER_REJECT /sandboxOverrides: both allowed and denied: `java.util.*`"],
    );
    check_with(
        &testing::js(
            "{x-toolgate-profile: clash, sandboxOverrides: {removeAllowClasses: [java.util.*], removeDenyClasses: [java.util.*]}}",
        ),
        "",
        &profiles,
        &[
            r#"profile = "clash" (tool)"#,
            r#"classes.allow = ["java.lang.*","java.math.*","java.time.*","java.text.*"] (baseline)"#,
        ],
    );
}

#[test]
fn unknown_profile_is_rejected() {
    check(
        &testing::js("x-toolgate-profile: ofline"),
        &["RESOLVER_REJECT /x-toolgate-profile: unknown profile `ofline`"],
    );
}

#[test]
fn deny_lists_grow_and_other_lists_are_replaced() {
    check_with(
        &testing::manifest(
            "cli: {command: cat}",
            "{classification: read, capability: {extends: read, approval: {dangerPatterns: [mine]}, execution: {blockedPaths: [/srv]}}}",
        ),
        "tools: {t: {capability: {approval: {dangerPatterns: [theirs]}, execution: {allowedPaths: [/data], blockedPaths: []}}}}",
        &[],
        &[
            "files.read = true (user)",
            r#"files.allowedPaths = ["/data"] (user)"#,
            r#"files.blockedPaths = ["/etc/shadow","$HOME/.ssh/id_*","$HOME/.gnupg/private-keys*","$HOME/.aws/credentials","/srv"] (defaults:read+tool)"#,
            "approval.askFrom = \"never\" (defaults:read)",
            r#"approval.dangerPatterns = ["/etc/passwd","/etc/shadow","\\.ssh/","\\.gnupg/","\\.aws/","\\.env$","(?i)credentials","(?i)secret","mine","theirs"] (defaults:read+tool+user)"#,
            "approval.trustAfterApproval = true (defaults:read)",
            r#"data.sensitivity = "high" (defaults:read)"#,
            "data.canReadSecrets = true (defaults:read)",
            "execution.timeoutMs = 10000 (defaults:read)",
            "audit.logArgs = true (defaults:read)",
            r#"labels.outputTrust = "user" (defaults:read)"#,
            r#"labels.outputDataClass = "sensitive" (defaults:read)"#,
        ],
    );
}

#[test]
fn approval_follows_the_classification() {
    let set = PolicySet::shipped().unwrap();
    let level_of = |spec: &ToolSpec, user: &str| {
        let user = UserOverrides::parse(user, Format::Yaml).unwrap();
        let policy = resolve(spec, &set, Some(&user)).unwrap();
        format!("{} {}", policy.approval.level.value.name(), policy.approval.level.origin)
    };
    let level = |handler: &str, rest: &str, user: &str| {
        let document = if handler.is_empty() { testing::js(rest) } else { testing::manifest(handler, rest) };
        level_of(&testing::spec(&document), user)
    };
    let cli = "cli: {command: date}";
    let silent = "tools: {}";
    // A missing class is rejected. If a model lacks it anyway, the tool counts as changing something.
    testing::refused("{name: t, handler: {cli: {command: date}}}", "(document): `classification` is missing");
    let mut unclassified = testing::spec(CLI);
    unclassified.governance.classification = None;
    assert_eq!(level_of(&unclassified, silent), "ask built-in");
    assert_eq!(level(cli, "capability: {extends: read}", silent), "auto defaults:read");
    assert_eq!(level(cli, "classification: write", silent), "ask tool");
    assert_eq!(level(cli, "classification: read", silent), "auto tool");
    assert_eq!(level(cli, "classification: destructive", silent), "always tool");
    assert_eq!(level(cli, "{classification: read, sandboxOverrides: {fileWrite: true}}", silent), "ask tool");
    assert_eq!(level("", "{}", silent), "auto built-in");
    assert_eq!(level("", "sandboxOverrides: {fileWrite: true}", silent), "auto tool");
    assert_eq!(level("", "sandboxOverrides: {destructive: true}", silent), "always tool");
    let lower = "tools: {t: {capability: {approval: {level: auto}}}}";
    assert_eq!(level(cli, "classification: destructive", lower), "auto user");
    assert_eq!(level(cli, "humanInTheLoop: {mode: REQUIRED}", lower), "always tool");
    assert_eq!(level("", "humanInTheLoop: {mode: REQUIRED}", lower), "always tool");
}

#[test]
fn overrides_of_another_tool_do_not_count() {
    check_with(&testing::js("{}"), "tools: {T: {capability: {network: {access: full}}}}", &[], &[]);
}

#[test]
fn manifest_paths_grant_file_access() {
    let cli = "cli: {command: cat}";
    let paths = "capability: {execution: {allowedPaths: [$WORKSPACE/in]}}";
    let read = ["files.read = true (tool)", r#"files.allowedPaths = ["$WORKSPACE/in"] (tool)"#];
    check(&testing::manifest(cli, paths), &read);
    check(
        &testing::manifest(cli, &format!("{{classification: write, {paths}}}")),
        &[
            r#"classification = "write" (tool)"#,
            read[0],
            "files.write = true (tool)",
            read[1],
            r#"approval.level = "ask" (tool)"#,
        ],
    );
    check(
        &testing::manifest(cli, "profile: files-editor"),
        &[
            r#"profile = "files-editor" (tool)"#,
            "files.read = true (profile:files-editor)",
            r#"files.allowedPaths = ["$WORKSPACE"] (profile:read-only-files)"#,
        ],
    );
}

#[test]
fn empty_path_list_in_overrides_removes_file_access() {
    for document in [
        testing::manifest("cli: {command: cat}", "capability: {execution: {allowedPaths: [/a]}}"),
        testing::manifest("cli: {command: cat}", "sandboxOverrides: {fileRead: true, fileWrite: true}"),
    ] {
        check_with(&document, "tools: {t: {capability: {execution: {allowedPaths: []}}}}", &[], &[]);
    }
}

#[test]
fn shorter_timeout_wins() {
    check(
        &testing::manifest(
            "cli: {command: date, timeout: 5000}",
            "capability: {extends: send_message, network: {access: none}}",
        ),
        &[
            r#"approval.level = "always" (defaults:send_message)"#,
            r#"data.sensitivity = "high" (defaults:send_message)"#,
            "data.canLeakData = true (defaults:send_message)",
            "execution.timeoutMs = 5000 (tool)",
            "execution.maxOutputBytes = 100000 (defaults:send_message)",
            r#"execution.env = "explicit" (defaults:send_message)"#,
            "audit.logArgs = true (defaults:send_message)",
            "audit.logOutput = true (defaults:send_message)",
            r#"audit.redactPatterns = [".*"] (defaults:send_message)"#,
        ],
    );
    let handler = "cli: {command: date, timeout: 5000}";
    check(
        &testing::manifest(handler, "capability: {execution: {timeout: 6000}}"),
        &["execution.timeoutMs = 5000 (tool)"],
    );
    let mut spec = testing::spec(&testing::manifest(handler, "capability: {execution: {timeout: 6000}}"));
    spec.governance.capability.execution.timeout_ms = Some(4000);
    let policy = resolve(&spec, &PolicySet::shipped().unwrap(), None).unwrap();
    assert_eq!(
        policy.execution.timeout_ms.value, 4000,
        "also where `check` would have refused the longer one"
    );
}

#[test]
fn unchanged_lists_are_shared() {
    let set = PolicySet::shipped().unwrap();
    let policy = resolve(&testing::spec(testing::PLAIN), &set, None).unwrap();
    assert!(Arc::ptr_eq(&policy.classes.deny.entries, &set.baseline().classes.deny.entries));
    assert!(Arc::ptr_eq(&policy.approval.danger_patterns.entries, &set.builtin().danger_patterns.entries));
}

#[test]
fn plain_test_documents_are_valid() {
    for document in [testing::PLAIN, CLI] {
        assert!(check_text(document, Format::Yaml).tools[0].spec.is_some());
    }
}

const CLI: &str = "{name: t, description: d, classification: read, handler: {cli: {command: date}}}";

#[test]
fn only_overrides_turn_the_journal_detector_off() {
    let document = |more: &str| testing::manifest("cli: {command: date}", &format!("capability: {more}"));
    let off = "{audit: {useSharedSecretDetector: false}}";
    let detector = |document: &str, user: &str| {
        let user = UserOverrides::parse(user, Format::Yaml).unwrap();
        let policy = resolve(&testing::spec(document), &PolicySet::shipped().unwrap(), Some(&user)).unwrap();
        policy.audit.use_shared_secret_detector
    };
    let operator = format!("tools: {{t: {{capability: {off}}}}}");
    assert_eq!(detector(&document(off), "tools: {}"), Setting::new(true, SettingOrigin::Builtin));
    assert_eq!(detector(&document("{}"), &operator), Setting::new(false, SettingOrigin::User));
}

#[test]
fn output_of_a_tool_that_reads_secrets_is_redacted() {
    let mut spec = testing::spec(CLI);
    spec.governance.capability.data.sanitize_output = Some(false);
    let set = PolicySet::shipped().unwrap();
    // A tool whose result is a secret need not read secrets.
    assert!(resolve(&spec, &set, None).is_ok());
    spec.governance.capability.data.can_read_secrets = Some(true);
    let refused = |spec: &ToolSpec| resolve(spec, &set, None).unwrap_err().remove(0);
    assert_eq!(refused(&spec).at.as_str(), "/capability/data/sanitizeOutput");
    // Shipped settings make no difference.
    spec.governance.capability.data.can_read_secrets = None;
    spec.governance.capability.extends = Some("bash".to_owned());
    assert_eq!(refused(&spec).at.as_str(), "/capability/data/sanitizeOutput");
    let user = "tools: {t: {capability: {data: {sanitizeOutput: false}}}}";
    let user = UserOverrides::parse(user, Format::Yaml).unwrap();
    assert!(resolve(&spec, &set, Some(&user)).is_ok());
}

#[test]
fn arguments_of_a_tool_with_network_are_searched_for_secrets() {
    let set = PolicySet::shipped().unwrap();
    let document = |more: &str| testing::manifest("cli: {command: date}", &format!("capability: {more}"));
    let resolved = |more: &str, user: &str| {
        let user = UserOverrides::parse(user, Format::Yaml).unwrap();
        resolve(&testing::spec(&document(more)), &set, Some(&user))
    };
    let leaks = |more: &str, user: &str| resolved(more, user).unwrap().data.can_leak_data;
    let nobody = "tools: {}";
    let upgradeable = "{network: {access: none, accessUpgradeable: proxy}}";
    assert_eq!(leaks("{network: {access: none}}", nobody), Setting::new(false, SettingOrigin::Tool));
    assert_eq!(leaks(upgradeable, nobody), Setting::new(true, SettingOrigin::Tool));
    // Shipped settings of a tool without a network do not apply to one with a network.
    assert!(!leaks("{extends: read}", nobody).value);
    for network in ["access: full", "access: none, accessUpgradeable: proxy"] {
        let more = format!("{{extends: read, network: {{{network}}}}}");
        assert_eq!(leaks(&more, nobody), Setting::new(true, SettingOrigin::Tool), "{more}");
        let off = format!("{{data: {{canLeakData: false}}, network: {{{network}}}}}");
        let refused = resolved(&off, nobody).unwrap_err().remove(0);
        assert_eq!(refused.at.as_str(), "/capability/data/canLeakData", "{off}");
    }
    assert!(!leaks("{data: {canLeakData: false}}", nobody).value);
    let operator = "tools: {t: {capability: {data: {canLeakData: false}}}}";
    assert_eq!(leaks(upgradeable, operator), Setting::new(false, SettingOrigin::User));
}

#[test]
fn unlabelled_output_is_as_sensitive_as_its_tool() {
    let document = |capability: &str| {
        let more = format!("{{classification: read, capability: {capability}}}");
        testing::manifest("cli: {command: date}", &more)
    };
    check(
        &document("{data: {sensitivity: high}}"),
        &[r#"data.sensitivity = "high" (tool)"#, r#"labels.outputDataClass = "sensitive" (tool)"#],
    );
    check(
        &document("{data: {sensitivity: secret}}"),
        &[r#"data.sensitivity = "secret" (tool)"#, r#"labels.outputDataClass = "secret" (tool)"#],
    );
    check(&document("{data: {sensitivity: none}}"), &[r#"data.sensitivity = "none" (tool)"#]);
    check(
        &document("{data: {sensitivity: secret}, labels: {outputDataClass: public}}"),
        &[r#"data.sensitivity = "secret" (tool)"#, r#"labels.outputDataClass = "public" (tool)"#],
    );
}
