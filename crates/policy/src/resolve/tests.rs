use toolgate_spec::{Format, check_text};

use super::*;
use crate::testing;

/// The settings that differ from those of the same kind of tool without any policy words, with their origins.
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

#[test]
fn without_a_word_nothing_is_reached() {
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
            "audit.logArgs = true (built-in)",
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
fn class_lists_are_below_plus_added_minus_removed() {
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
fn what_is_allowed_and_denied_is_refused() {
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
fn network_and_files_are_three_valued() {
    let profiles = [("wide", "{network: open, fileMode: readwrite, fsBasePath: /srv, hostsAllow: [h.org]}")];
    check_with(
        &testing::js(
            "{x-toolgate-profile: wide, sandboxOverrides: {networkMode: blocked, fileRead: false, fileWrite: false}}",
        ),
        "",
        &profiles,
        &[r#"profile = "wide" (tool)"#, r#"files.basePath = "/srv" (profile:wide)"#],
    );
    check_with(
        &testing::js(
            "{x-toolgate-profile: wide, sandboxOverrides: {networkMode: null, fileRead: null, fileWrite: false, fsBasePath: null}}",
        ),
        "",
        &profiles,
        &[
            r#"profile = "wide" (tool)"#,
            r#"network.mode = "open" (profile:wide)"#,
            "network.blockPrivateIPs = false (profile:wide)",
            "files.read = true (profile:wide)",
            r#"files.basePath = "/srv" (profile:wide)"#,
            r#"files.allowedPaths = ["/srv"] (profile:wide)"#,
            "data.canLeakData = true (profile:wide)",
            "labels.acceptsUntrusted = false (built-in)",
        ],
    );
}

#[test]
fn hosts_join_in_allowlist_mode_only() {
    let profiles = [
        ("root", "{network: allowlist, hostsAllow: [root.org]}"),
        ("leaf", "{extends: root, hostsAllow: [leaf.org, ROOT.org]}"),
    ];
    check_with(
        &testing::js(
            "{x-toolgate-profile: leaf, sandboxOverrides: {networkMode: allowlist, hostsAllow: [tool.org, Leaf.ORG]}}",
        ),
        "",
        &profiles,
        &[
            r#"profile = "leaf" (tool)"#,
            r#"network.mode = "allowlist" (tool)"#,
            r#"network.hosts = ["root.org","leaf.org","tool.org"] (profile:root+profile:leaf+tool)"#,
            "data.canLeakData = true (tool)",
            "labels.acceptsUntrusted = false (built-in)",
        ],
    );
    check_with(
        &testing::js("{x-toolgate-profile: leaf, sandboxOverrides: {networkMode: strict}}"),
        "",
        &profiles,
        &[
            r#"profile = "leaf" (tool)"#,
            r#"network.mode = "strict" (tool)"#,
            "data.canLeakData = true (tool)",
            "labels.acceptsUntrusted = false (built-in)",
        ],
    );
    check(&testing::js("sandboxOverrides: {hostsAllow: [x.org]}"), &[]);
}

#[test]
fn an_unknown_profile_is_refused() {
    check(
        &testing::js("x-toolgate-profile: ofline"),
        &["RESOLVER_REJECT /x-toolgate-profile: there is no profile `ofline`"],
    );
}

#[test]
fn two_vocabularies_must_agree() {
    check(
        &testing::js(
            "{sandboxOverrides: {networkMode: strict}, x-toolgate-capability: {network: {access: none}}}",
        ),
        &[
            "RESOLVER_REJECT /x-toolgate-capability/network/access: `networkMode` is `strict`, `access` is `none`",
        ],
    );
    check(
        &testing::js(
            "{sandboxOverrides: {networkMode: open}, x-toolgate-capability: {network: {access: full, blockPrivateIPs: true}}}",
        ),
        &[
            "RESOLVER_REJECT /x-toolgate-capability/network/blockPrivateIPs: `networkMode` and `blockPrivateIPs` disagree",
        ],
    );
    check(
        &testing::js(
            "{sandboxOverrides: {networkMode: allowlist, hostsAllow: [a.org]}, x-toolgate-capability: {network: {access: limited, allowedHosts: [a.org, b.org]}}}",
        ),
        &[
            "RESOLVER_REJECT /x-toolgate-capability/network/allowedHosts: `hostsAllow` and `allowedHosts` list different hosts",
        ],
    );
    check(
        &testing::js(
            "{sandboxOverrides: {fileRead: false}, x-toolgate-capability: {execution: {allowedPaths: [$WORKSPACE]}}}",
        ),
        &[
            "RESOLVER_REJECT /x-toolgate-capability/execution/allowedPaths: `sandboxOverrides` and `allowedPaths` disagree about files",
        ],
    );
}

#[test]
fn capability_words_are_network_modes() {
    let reach = ["data.canLeakData = true (tool)", "labels.acceptsUntrusted = false (built-in)"];
    check(
        &testing::js("x-toolgate-capability: {network: {access: full}}"),
        &[r#"network.mode = "strict" (tool)"#, reach[0], reach[1]],
    );
    check(
        &testing::js("x-toolgate-capability: {network: {access: full, blockPrivateIPs: false}}"),
        &[r#"network.mode = "open" (tool)"#, "network.blockPrivateIPs = false (tool)", reach[0], reach[1]],
    );
    check(
        &testing::js("x-toolgate-capability: {network: {access: limited, allowedHosts: [a.org]}}"),
        &[r#"network.mode = "allowlist" (tool)"#, r#"network.hosts = ["a.org"] (tool)"#, reach[0], reach[1]],
    );
}

/// `check` lets no such document through; a model that came another way must not get past `resolve` either.
#[test]
fn a_host_that_is_none_is_refused_twice() {
    let network = |hosts: &str| {
        testing::js(&format!("x-toolgate-capability: {{network: {{access: limited, {hosts}}}}}"))
    };
    testing::refused(
        &network("allowedHosts: ['\u{430}.org']"),
        "/x-toolgate-capability/network/allowedHosts/0: a host is written in ASCII; use its `xn--` form",
    );
    let refused = |change: fn(&mut ToolSpec, Vec<String>)| {
        let mut spec = testing::spec(&network("allowedHosts: [a.org]"));
        change(&mut spec, vec!["a.org".into(), "\u{430}.org".into()]);
        let findings = resolve(&spec, &PolicySet::shipped().unwrap(), None).unwrap_err();
        findings.iter().map(|finding| format!("{}: {}", finding.at, finding.message)).collect::<Vec<_>>()
    };
    let ascii = "a host is written in ASCII; use its `xn--` form";
    assert_eq!(
        refused(|spec, hosts| spec.governance.capability.network.allowed_hosts = Some(hosts)),
        [format!("/x-toolgate-capability/network/allowedHosts/1: {ascii}")]
    );
    assert_eq!(
        refused(|spec, hosts| spec.governance.capability.network.blocked_hosts = Some(hosts)),
        [format!("/x-toolgate-capability/network/blockedHosts/1: {ascii}")]
    );
    assert_eq!(
        refused(|spec, hosts| {
            spec.governance.capability.network.allowed_hosts = None;
            spec.overrides.hosts_allow = hosts;
        }),
        [format!("/sandboxOverrides/hostsAllow/1: {ascii}")]
    );
}

#[test]
fn prohibitions_only_grow_and_other_lists_are_replaced() {
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
            r#"approval.dangerPatterns = ["/etc/passwd","/etc/shadow","\\.ssh/","\\.gnupg/","\\.aws/","\\.env$","(?i)credentials","(?i)secret","mine","theirs"] (defaults:read+tool+user)"#,
            "approval.trustAfterApproval = true (defaults:read)",
            r#"data.sensitivity = "high" (defaults:read)"#,
            "data.canReadSecrets = true (defaults:read)",
            "execution.timeoutMs = 10000 (defaults:read)",
            r#"labels.outputTrust = "user" (defaults:read)"#,
            r#"labels.outputDataClass = "sensitive" (defaults:read)"#,
        ],
    );
}

#[test]
fn approval_follows_what_a_call_can_do() {
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
    // Silence is refused; a model that is silent all the same is taken to change something.
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
fn a_handler_reaches_its_own_host_and_no_other() {
    let http = "http: {url: 'https://API.example.com/v1/{id}'}";
    let own = [
        r#"network.mode = "allowlist" (tool)"#,
        r#"network.hosts = ["api.example.com"] (tool)"#,
        "data.canLeakData = true (tool)",
    ];
    check(
        &testing::manifest(http, "params: [{name: id, type: STRING, required: true, testValue: '7'}]"),
        &own,
    );
    check(&testing::manifest("mcp: {tool: x, url: 'https://api.example.com/mcp'}", "{}"), &own);
    check(
        &testing::manifest("grpc: {endpoint: 'https://api.example.com:443', service: a.B, method: C}", "{}"),
        &own,
    );
}

#[test]
fn declared_network_must_cover_the_handlers_host() {
    let http = "http: {url: 'https://api.example.com:8443/v1'}";
    let refused = |why: &str| {
        format!(
            "RESOLVER_REJECT /handler/http/url: the handler's host `api.example.com` is out of reach: {why}"
        )
    };
    for (rest, why) in [
        ("sandboxOverrides: {networkMode: blocked}", "the network is blocked (tool)"),
        ("profile: offline", "the network is blocked (profile:offline)"),
        ("capability: {extends: read}", "the network is blocked (defaults:read)"),
        (
            "sandboxOverrides: {networkMode: allowlist, hostsAllow: [example.com]}",
            "it is not among the allowed hosts (tool)",
        ),
        (
            "capability: {network: {access: limited, allowedHosts: [other.org]}}",
            "it is not among the allowed hosts (tool)",
        ),
        ("capability: {network: {blockedHosts: ['*.example.com']}}", "it is among the blocked hosts (tool)"),
        ("capability: {network: {blockedPorts: [8443]}}", "port 8443 is blocked (tool)"),
        ("sandboxOverrides: {networkMode: allowlist}", "it is not among the allowed hosts (baseline)"),
    ] {
        check(&testing::manifest(http, rest), &[&refused(why)]);
    }
    check_with(
        &testing::manifest(http, "{}"),
        "tools: {t: {capability: {network: {access: none}}}}",
        &[],
        &[&refused("the network is blocked (user)")],
    );
}

#[test]
fn the_operator_may_narrow_open_and_widen_strict() {
    let open = testing::js("sandboxOverrides: {networkMode: open}");
    check_with(
        &open,
        "tools: {t: {capability: {network: {blockPrivateIPs: true}}}}",
        &[],
        &[
            r#"network.mode = "strict" (user)"#,
            "data.canLeakData = true (user)",
            "labels.acceptsUntrusted = false (built-in)",
        ],
    );
    check_with(
        &testing::js("sandboxOverrides: {networkMode: allowlist, hostsAllow: [a.org, b.org]}"),
        "tools: {t: {capability: {network: {allowedHosts: [c.org]}}}}",
        &[],
        &[
            r#"network.mode = "allowlist" (tool)"#,
            r#"network.hosts = ["c.org"] (user)"#,
            "data.canLeakData = true (tool)",
            "labels.acceptsUntrusted = false (built-in)",
        ],
    );
}

#[test]
fn overrides_of_another_tool_do_not_count() {
    check_with(&testing::js("{}"), "tools: {T: {capability: {network: {access: full}}}}", &[], &[]);
}

#[test]
fn manifests_speak_by_their_paths() {
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
fn the_operator_takes_files_away_by_emptying_the_list() {
    for document in [
        testing::manifest("cli: {command: cat}", "capability: {execution: {allowedPaths: [/a]}}"),
        testing::manifest("cli: {command: cat}", "sandboxOverrides: {fileRead: true, fileWrite: true}"),
    ] {
        check_with(&document, "tools: {t: {capability: {execution: {allowedPaths: []}}}}", &[], &[]);
    }
}

#[test]
fn a_timeout_is_stated_once() {
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
            "audit.logOutput = true (defaults:send_message)",
            r#"audit.redactPatterns = [".*"] (defaults:send_message)"#,
        ],
    );
    check(
        &testing::manifest("cli: {command: date, timeout: 5000}", "capability: {execution: {timeout: 6000}}"),
        &["RESOLVER_REJECT /handler/cli/timeout: the handler's timeout is 5000 ms, the capability's 6000 ms"],
    );
}

#[test]
fn an_address_is_meant_only_where_it_is_named() {
    let set = PolicySet::shipped().unwrap();
    let names = |hosts: &str, address: &str| {
        let document =
            testing::js(&format!("sandboxOverrides: {{networkMode: allowlist, hostsAllow: [{hosts}]}}"));
        let policy = resolve(&testing::spec(&document), &set, None).unwrap();
        policy.network.names_address(address.parse().unwrap())
    };
    assert!(names("10.0.0.7", "10.0.0.7"));
    assert!(names("localhost", "127.0.0.1") && names("localhost", "::1"));
    assert!(!names("'*', internal.corp, '*.corp'", "10.0.0.7"));
    assert!(!names("10.0.0.7", "10.0.0.8"));
}

#[test]
fn a_profile_cannot_smuggle_hosts_past_the_reader() {
    let profiles = [("quiet", "{extends: quieter}"), ("quieter", "{hostsAllow: ['evil.example']}")];
    check_with(
        &testing::js(
            "{x-toolgate-profile: quiet, sandboxOverrides: {networkMode: allowlist, hostsAllow: [good.org]}}",
        ),
        "",
        &profiles,
        &[
            r#"profile = "quiet" (tool)"#,
            r#"network.mode = "allowlist" (tool)"#,
            r#"network.hosts = ["evil.example","good.org"] (profile:quieter+tool)"#,
            "data.canLeakData = true (tool)",
            "labels.acceptsUntrusted = false (built-in)",
        ],
    );
    // A profile's hosts without a mode give a handler nothing beyond its own host.
    check_with(
        &testing::manifest("http: {url: 'https://good.org/'}", "profile: quiet"),
        "",
        &profiles,
        &[
            r#"profile = "quiet" (tool)"#,
            r#"network.mode = "allowlist" (tool)"#,
            r#"network.hosts = ["good.org"] (tool)"#,
            "data.canLeakData = true (tool)",
        ],
    );
}

#[test]
fn lists_are_shared_where_nothing_changes_them() {
    let set = PolicySet::shipped().unwrap();
    let policy = resolve(&testing::spec(testing::PLAIN), &set, None).unwrap();
    assert!(Arc::ptr_eq(&policy.classes.deny.entries, &set.baseline().classes.deny.entries));
    assert!(Arc::ptr_eq(&policy.approval.danger_patterns.entries, &set.builtin().danger_patterns.entries));
}

#[test]
fn the_plain_documents_are_sound() {
    for document in [testing::PLAIN, CLI] {
        assert!(check_text(document, Format::Yaml).tools[0].spec.is_some());
    }
}

const CLI: &str = "{name: t, description: d, classification: read, handler: {cli: {command: date}}}";
