mod props;

use toolgate_spec::Format;

use super::*;
use crate::{UserOverrides, resolve, testing};

#[track_caller]
fn check(document: &str, expect: &str) {
    check_with(document, "tools: {}", &[], expect);
}

#[track_caller]
fn check_with(document: &str, user: &str, profiles: &[(&str, &str)], expect: &str) {
    let set = PolicySet::new(PolicySet::SHIPPED_BASELINE, profiles.iter().copied()).unwrap();
    let user = UserOverrides::parse(user, Format::Yaml).unwrap();
    let spec = testing::spec(document);
    let risk = rate(&resolve(&spec, &set, Some(&user)).unwrap(), &spec, &set);
    let reasons: Vec<String> = risk
        .because
        .iter()
        .map(|reason| format!("{} {} ({})", reason.level.name(), reason.code, reason.origin))
        .collect();
    assert_eq!(format!("{}: {}", risk.level.name(), reasons.join(", ")), expect, "\n{document}");
}

#[test]
fn network() {
    let overrides = |text: &str| testing::js(&format!("sandboxOverrides: {{{text}}}"));
    check(&overrides(""), "L0: ");
    check(&overrides("networkMode: blocked, hostsAllow: ['*']"), "L0: ");
    check(&overrides("networkMode: allowlist"), "L0: ");
    check(&overrides("networkMode: allowlist, hostsAllow: [a.org]"), "L3: L3 network-allowlist (tool)");
    check(&overrides("networkMode: allowlist, hostsAllow: [a.org, '*']"), "L4: L4 network-any-host (tool)");
    check(&overrides("networkMode: allowlist, hostsAllow: ['a.org:443']"), "L3: L3 network-allowlist (tool)");
    check(&overrides("networkMode: allowlist, hostsAllow: ['*:443']"), "L4: L4 network-any-host (tool)");
    check(&overrides("networkMode: strict"), "L3: L3 network-strict (tool)");
    check(&overrides("networkMode: open"), "L4: L4 network-open (tool)");
    let capability = |text: &str| testing::js(&format!("x-toolgate-capability: {{network: {{{text}}}}}"));
    check(
        &capability("access: limited, allowedHosts: [a.org], blockPrivateIPs: false, blockMetadata: false"),
        "L4: L3 network-allowlist (tool), L4 network-private (tool), L4 network-metadata (tool)",
    );
    check(
        &capability("access: limited, requireApprovalForUnknownHosts: true"),
        "L3: L3 network-unknown-hosts (tool)",
    );
    check(&capability("access: none, blockPrivateIPs: false, blockMetadata: false"), "L0: ");
    let command = "capability: {network: {access: none, accessUpgradeable: proxy}}";
    check(
        &testing::manifest("cli: {command: date}", command),
        "L3: L3 network-on-approval (tool), L3 native-command (tool)",
    );
}

#[test]
fn files_and_consequence() {
    check(&testing::js("sandboxOverrides: {fileRead: true}"), "L3: L3 file-read (tool)");
    check(&testing::js("sandboxOverrides: {fileWrite: true}"), "L4: L4 file-write (tool)");
    check(&testing::js("sandboxOverrides: {destructive: true}"), "L5: L5 destructive (tool)");
    check(&testing::js("x-toolgate-classification: destructive"), "L5: L5 destructive (tool)");
}

/// A Safe Tool Spec that uses only settings of the specification keeps the specification's level.
#[test]
fn specification_settings_keep_their_level() {
    let overrides = |text: &str| testing::js(&format!("sandboxOverrides: {{{text}}}"));
    check(
        &overrides("fileRead: true, fsBasePath: /etc, networkMode: strict"),
        "L3: L3 network-strict (tool), L3 file-read (tool)",
    );
    check(
        &overrides("fileRead: true, networkMode: allowlist, hostsAllow: [a.org]"),
        "L3: L3 network-allowlist (tool), L3 file-read (tool)",
    );
}

#[test]
fn reads_outside_the_workspace_are_grave() {
    let command = |paths: &str| {
        let more = format!("capability: {{execution: {{allowedPaths: [{paths}]}}}}");
        testing::manifest("cli: {command: cat}", &more)
    };
    let rest = "L3 native-command (tool)";
    for inside in ["$WORKSPACE", "$WORKSPACE/a", "$WORKSPACE/", "$WORKSPACE/**/a"] {
        check(&command(inside), &format!("L3: L3 file-read (tool), {rest}"));
    }
    for outside in ["/", "$HOME", "/etc/app", "$WORKSPACE, /srv"] {
        check(&command(outside), &format!("L4: L3 file-read (tool), L4 file-read-outside (tool), {rest}"));
    }
    let script = |more: &str| {
        testing::js(&format!("{{sandboxOverrides: {{fileRead: true{more}}}, {CAPABILITY_PATHS}}}"))
    };
    check(&script(""), "L4: L3 file-read (tool), L4 file-read-outside (tool)");
    check(&script(", fsBasePath: /srv"), "L3: L3 file-read (tool)");
    check_with(
        &testing::js("sandboxOverrides: {fileRead: true}"),
        "tools: {t: {capability: {execution: {allowedPaths: [/]}}}}",
        &[],
        "L4: L3 file-read (tool), L4 file-read-outside (user)",
    );
}

const CAPABILITY_PATHS: &str = "x-toolgate-capability: {execution: {allowedPaths: [/srv/data]}}";

#[test]
fn readable_credentials_and_files_with_a_network_are_grave() {
    let command =
        |capability: &str| testing::manifest("cli: {command: cat}", &format!("capability: {{{capability}}}"));
    let workspace = "execution: {allowedPaths: [$WORKSPACE]}";
    check(
        &command(&format!("data: {{canReadSecrets: true}}, {workspace}")),
        "L4: L3 file-read (tool), L4 file-read-secrets (tool), L3 native-command (tool)",
    );
    check(&command("data: {canReadSecrets: true}"), "L3: L3 native-command (tool)");
    // The shipped settings grant the workspace only.
    check(&command("extends: read"), "L3: L3 file-read (defaults:read), L3 native-command (tool)");
    check(
        &command("extends: read, execution: {allowedPaths: [$HOME]}"),
        "L4: L3 file-read (tool), L4 file-read-outside (tool), L4 file-read-secrets (defaults:read), L3 native-command (tool)",
    );
    check(
        &command(&format!("network: {{access: limited, allowedHosts: [a.org]}}, {workspace}")),
        "L4: L3 network-allowlist (tool), L3 file-read (tool), L4 files-and-network (tool), L3 native-command (tool)",
    );
    check(
        &testing::js(
            "{sandboxOverrides: {fileRead: true}, x-toolgate-capability: {network: {access: full}}}",
        ),
        "L4: L3 network-strict (tool), L3 file-read (tool), L4 files-and-network (tool)",
    );
    // This example was once published as L3 without a warning.
    check(
        &command(
            "approval: {level: auto}, data: {canReadSecrets: true}, network: {access: full}, execution: {allowedPaths: [/]}",
        ),
        "L4: L3 network-strict (tool), L3 file-read (tool), L4 file-read-outside (tool), L4 file-read-secrets (tool), L4 files-and-network (tool), L3 native-command (tool)",
    );
}

#[test]
fn classes_are_rated_by_removed_and_added_entries() {
    let overrides = |text: &str| testing::js(&format!("sandboxOverrides: {{{text}}}"));
    check(&overrides("removeDenyClasses: [java.lang.Thread]"), "L3: L3 deny-removed (tool)");
    check(
        &overrides("removeDenyClasses: [java.lang.Thread, java.lang.ThreadGroup, java.util.spi.*]"),
        "L4: L4 deny-many-removed (tool)",
    );
    check(&overrides("removeDenyClasses: [java.lang.Runtime]"), "L5: L5 deny-critical-removed (tool)");
    check(&overrides("removeDenyClasses: [no.such.Entry]"), "L0: ");
    check(&overrides("addDenyClasses: [x.Y], removeAllowClasses: [java.util.*]"), "L0: ");
    check(&overrides("addAllowClasses: [java.util.*]"), "L0: ");
    check(
        &overrides("addAllowClasses: [java.lang.Runtime*, java.io.FileWriter, java.net.URL, x.Y]"),
        "L5: L5 allow-critical (tool), L5 allow-file-write (tool), L4 allow-network (tool), L3 allow-other (tool)",
    );
    check(&overrides("addAllowClasses: [x.Y], removeAllowClasses: [x.Y]"), "L0: ");
}

#[test]
fn permissive_profile_or_baseline_raises_the_level() {
    let profile = [("wide", "{network: open, fileMode: read, addAllowClasses: [java.io.*]}")];
    check_with(
        &testing::js("x-toolgate-profile: wide"),
        "tools: {}",
        &profile,
        "L5: L4 network-open (profile:wide), L3 file-read (profile:wide), L4 files-and-network (profile:wide), L5 allow-file-write (profile:wide)",
    );
    let baseline = PolicySet::SHIPPED_BASELINE
        .replace("  - java.lang.System\n", "")
        .replace("fileRead: false", "fileRead: true");
    let set = PolicySet::new::<&str, &str>(&baseline, []).unwrap();
    let spec = testing::spec(testing::PLAIN);
    let risk = rate(&resolve(&spec, &set, None).unwrap(), &spec, &set);
    let codes: Vec<_> = risk.because.iter().map(|reason| reason.code).collect();
    assert_eq!((risk.level, codes), (RiskLevel::L5, vec!["file-read", "deny-critical-removed"]));
}

#[test]
fn handlers_sandbox_and_environment() {
    check(&testing::manifest("cli: {command: date}", "{}"), "L3: L3 native-command (tool)");
    check(
        &testing::manifest(
            "mcp: {tool: x, upstream: server, pin: 'toolpin1:0000000000000000000000000000000000000000000000000000000000000000'}",
            "{}",
        ),
        "L3: L3 native-command (tool)",
    );
    check(&testing::manifest("http: {url: 'https://a.org/'}", "{}"), "L3: L3 network-allowlist (tool)");
    let user = "tools: {t: {capability: {execution: {sandbox: none, env: inherit}}}}";
    check_with(
        &testing::manifest("cli: {command: date}", "{}"),
        user,
        &[],
        "L5: L3 native-command (tool), L5 no-sandbox (user), L4 env-inherit (user)",
    );
}

#[test]
fn approval_lowers_by_one_band_and_never_below_l1() {
    let set = PolicySet::shipped().unwrap();
    let level_of = |document: &str, wording: Wording| {
        let spec = testing::spec(document);
        let policy = resolve(&spec, &set, None).unwrap();
        effective_level(&rate(&policy, &spec, &set), &policy.approval, wording).name()
    };
    let asked = |text: &str| {
        testing::js(&format!("{{humanInTheLoop: {{mode: REQUIRED}}, sandboxOverrides: {{{text}}}}}"))
    };
    assert_eq!(level_of(&asked("fileWrite: true"), Wording::Clean), "L3");
    assert_eq!(level_of(&asked("fileWrite: true"), Wording::Poisoned), "L4");
    assert_eq!(level_of(&asked(""), Wording::Clean), "L0");
    assert_eq!(level_of(&testing::js("sandboxOverrides: {fileRead: true}"), Wording::Clean), "L3");
    // Approval with trust is not approval of every call.
    let trusted = "{classification: write, capability: {approval: {trustAfterApproval: true}}}";
    assert_eq!(level_of(&testing::manifest("cli: {command: date}", trusted), Wording::Clean), "L3");
    let asked_each_time = testing::manifest("cli: {command: date}", "classification: write");
    assert_eq!(level_of(&asked_each_time, Wording::Clean), "L2");
}
