//! `policy: {approval: …}`: what the reference's migration gives such a manifest.

use super::*;

#[test]
fn the_older_form_gets_the_defaults_of_its_time() {
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
fn a_newer_word_and_the_operators_lie_above_it() {
    let timeout = |more: &str| {
        let document = testing::manifest("cli: {command: date}", more);
        let user = UserOverrides::parse("tools: {t: {capability: {audit: {logArgs: false}}}}", Format::Yaml);
        let policy =
            resolve(&testing::spec(&document), &PolicySet::shipped().unwrap(), Some(&user.unwrap())).unwrap();
        assert_eq!(policy.audit.log_args.origin, Origin::User);
        let (timeout, trust) = (policy.execution.timeout_ms, policy.approval.trust_after_approval);
        format!("{} ({}), trust {} ({})", timeout.value, timeout.origin, trust.value, trust.origin)
    };
    assert_eq!(
        timeout("{policy: {approval: ask}, capability: {execution: {timeout: 5000}}}"),
        "5000 (tool), trust true (defaults:policy-approval)"
    );
    // Whoever names defaults gets those, and their trust; only the level is taken from the older word.
    assert_eq!(
        timeout("{policy: {approval: always}, capability: {extends: bash}}"),
        "120000 (defaults:bash), trust false (defaults:bash)"
    );
    assert_eq!(timeout("policy: null"), "30000 (baseline), trust false (built-in)");
}

#[test]
fn it_reaches_no_network_unless_it_says_so() {
    let http = "http: {url: 'https://a.org/'}";
    check(
        &testing::manifest(http, "policy: {approval: ask}"),
        &[
            "RESOLVER_REJECT /handler/http/url: the handler's host `a.org` is out of reach: the network is blocked (defaults:policy-approval)",
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
fn no_document_can_name_it() {
    let set = PolicySet::shipped().unwrap();
    assert!(set.defaults_names().all(|name| name != "policy-approval"));
    let document = testing::manifest("cli: {command: date}", "capability: {extends: policy-approval}");
    assert!(check_text(&document, Format::Yaml).tools[0].spec.is_none());
}
