use super::*;

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
fn both_network_notations_must_agree() {
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
fn capability_settings_map_to_network_modes() {
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

/// `check` rejects such a document; `resolve` must also reject a model from another source.
#[test]
fn invalid_host_is_rejected_by_check_and_resolve() {
    let network = |hosts: &str| {
        testing::js(&format!("x-toolgate-capability: {{network: {{access: limited, {hosts}}}}}"))
    };
    testing::refused(
        &network("allowedHosts: ['\u{430}.org']"),
        "/x-toolgate-capability/network/allowedHosts/0: a host must be ASCII; use its `xn--` form",
    );
    let refused = |change: fn(&mut ToolSpec, Vec<String>)| {
        let mut spec = testing::spec(&network("allowedHosts: [a.org]"));
        change(&mut spec, vec!["a.org".into(), "\u{430}.org".into()]);
        let findings = resolve(&spec, &PolicySet::shipped().unwrap(), None).unwrap_err();
        findings.iter().map(|finding| format!("{}: {}", finding.at, finding.message)).collect::<Vec<_>>()
    };
    let ascii = "a host must be ASCII; use its `xn--` form";
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
fn handler_reaches_its_own_host_only() {
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
            "RESOLVER_REJECT /handler/http/url: the handler's host `api.example.com` is not reachable: {why}"
        )
    };
    for (rest, why) in [
        ("sandboxOverrides: {networkMode: blocked}", "the network is blocked (tool)"),
        ("profile: offline", "the network is blocked (profile:offline)"),
        ("capability: {extends: read}", "the network is blocked (defaults:read)"),
        (
            "sandboxOverrides: {networkMode: allowlist, hostsAllow: [example.com]}",
            "it is not an allowed host (tool)",
        ),
        (
            "capability: {network: {access: limited, allowedHosts: [other.org]}}",
            "it is not an allowed host (tool)",
        ),
        (
            "capability: {network: {access: limited, allowedHosts: ['api.example.com:443']}}",
            "it is not an allowed host (tool)",
        ),
        ("capability: {network: {blockedHosts: ['api.example.com:8443']}}", "it is a blocked host (tool)"),
        ("capability: {network: {blockedHosts: ['*.example.com']}}", "it is a blocked host (tool)"),
        ("capability: {network: {blockedPorts: [8443]}}", "port 8443 is blocked (tool)"),
        ("sandboxOverrides: {networkMode: allowlist}", "it is not an allowed host (baseline)"),
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
fn remedy_for_a_blocked_host_names_the_pattern_to_remove() {
    let http = "http: {url: 'https://api.example.com:8443/v1'}";
    for (rest, remedy) in [
        ("capability: {network: {blockedHosts: ['*']}}", "remove `*` from `network.blockedHosts`"),
        (
            "capability: {network: {access: limited, allowedHosts: [api.example.com], blockedHosts: [b.org, '*.example.com']}}",
            "remove `*.example.com` from `network.blockedHosts`",
        ),
        ("capability: {network: {blockedPorts: [8443]}}", "remove 8443 from `network.blockedPorts`"),
        (
            "sandboxOverrides: {networkMode: blocked}",
            "write `network: {access: limited, allowedHosts: [api.example.com]}`",
        ),
    ] {
        let spec = testing::spec(&testing::manifest(http, rest));
        let profiles = PolicySet::SHIPPED_PROFILES.iter().copied();
        let set = PolicySet::new(PolicySet::SHIPPED_BASELINE, profiles).unwrap();
        let findings = resolve(&spec, &set, None).unwrap_err();
        assert!(findings[0].remedy.starts_with(remedy), "{rest}: {}", findings[0].remedy);
    }
}

#[test]
fn overrides_can_narrow_open_and_widen_strict() {
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
fn profile_hosts_need_a_network_mode() {
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
    // Without a mode, the hosts of a profile give a handler nothing beyond its own host.
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
