//! `policy: {approval: …}`: the result of the reference's migration.

use super::*;

#[test]
fn older_form_gets_its_old_defaults() {
    let document = testing::manifest("cli: {command: date}", "policy: {approval: ask}");
    let policy = resolve(&testing::spec(&document), &PolicySet::shipped().unwrap(), None).unwrap();
    let shown: Vec<String> = policy
        .settings()
        .iter()
        .filter(|setting| setting.origin != "baseline")
        .map(|setting| format!("{} = {} ({})", setting.name, setting.value, setting.origin))
        .collect();
    let older = "(defaults:policy-approval)";
    assert_eq!(
        shown,
        [
            "profile = null (built-in)".to_owned(),
            "classification = \"read\" (tool)".into(),
            "destructive = false (tool)".into(),
            "javaInterop = false (built-in)".into(),
            format!("network.mode = \"blocked\" {older}"),
            format!("network.hosts = [] {older}"),
            "network.askForUnknownHosts = false (built-in)".into(),
            format!("network.blockedHosts = [] {older}"),
            format!("network.blockedPorts = [] {older}"),
            format!("network.blockPrivateIPs = true {older}"),
            format!("network.blockMetadata = true {older}"),
            "network.proxyOnApproval = false (built-in)".into(),
            format!("files.blockedPaths = [] {older}"),
            "approval.level = \"ask\" (tool)".into(),
            "approval.askFrom = \"gateway\" (built-in)".into(),
            format!("approval.dangerPatterns = [] {older}"),
            format!("approval.askForMethods = [] {older}"),
            format!("approval.trustAfterApproval = true {older}"),
            format!("data.sensitivity = \"medium\" {older}"),
            format!("data.canReadSecrets = false {older}"),
            format!("data.canLeakData = false {older}"),
            format!("data.sanitizeOutput = true {older}"),
            format!("execution.sandbox = \"process\" {older}"),
            format!("execution.timeoutMs = 60000 {older}"),
            format!("execution.maxOutputBytes = 1000000 {older}"),
            format!("execution.env = \"clean\" {older}"),
            format!("execution.allowedEnvVars = [] {older}"),
            format!("audit.logArgs = true {older}"),
            format!("audit.logOutput = false {older}"),
            format!("audit.redactPatterns = [] {older}"),
            format!("audit.alertOn = [] {older}"),
            "audit.useSharedSecretDetector = true (built-in)".into(),
            "labels.outputTrust = \"untrusted\" (built-in)".into(),
            "labels.outputDataClass = \"internal\" (built-in)".into(),
            "labels.acceptsUntrusted = false (built-in)".into(),
        ]
    );
}

#[test]
fn capability_and_overrides_win_over_the_older_form() {
    let timeout = |more: &str| {
        let document = testing::manifest("cli: {command: date}", more);
        let user = UserOverrides::parse("tools: {t: {capability: {audit: {logArgs: false}}}}", Format::Yaml);
        let policy =
            resolve(&testing::spec(&document), &PolicySet::shipped().unwrap(), Some(&user.unwrap())).unwrap();
        assert_eq!(policy.audit.log_args.origin, SettingOrigin::User);
        let (timeout, trust) = (policy.execution.timeout_ms, policy.approval.trust_after_approval);
        format!("{} ({}), trust {} ({})", timeout.value, timeout.origin, trust.value, trust.origin)
    };
    assert_eq!(
        timeout("{policy: {approval: ask}, capability: {execution: {timeout: 5000}}}"),
        "5000 (tool), trust true (defaults:policy-approval)"
    );
    // A document that extends defaults gets those and their trust; only the level comes from the older setting.
    assert_eq!(
        timeout("{policy: {approval: always}, capability: {extends: bash}}"),
        "120000 (defaults:bash), trust false (defaults:bash)"
    );
    assert_eq!(timeout("policy: null"), "30000 (baseline), trust false (built-in)");
}

#[test]
fn older_form_has_no_network_by_default() {
    let http = "http: {url: 'https://a.org/'}";
    check(
        &testing::manifest(http, "policy: {approval: ask}"),
        &[
            "RESOLVER_REJECT /handler/http/url: the handler's host `a.org` is not reachable: the network is blocked (defaults:policy-approval)",
        ],
    );
    let policy = resolve(
        &testing::spec(&testing::manifest(
            http,
            "{policy: {approval: ask}, capability: {network: {access: limited, allowedHosts: [a.org]}}}",
        )),
        &PolicySet::shipped().unwrap(),
        None,
    )
    .unwrap();
    assert_eq!(policy.network.hosts.values().map(ToString::to_string).collect::<Vec<_>>(), ["a.org"]);
}

#[test]
fn document_cannot_extend_the_older_defaults() {
    let set = PolicySet::shipped().unwrap();
    assert!(set.defaults_names().all(|name| name != "policy-approval"));
    let document = testing::manifest("cli: {command: date}", "capability: {extends: policy-approval}");
    assert!(check_text(&document, Format::Yaml).tools[0].spec.is_none());
}
