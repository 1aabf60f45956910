use super::*;
use crate::{PolicySet, rate, resolve, testing};

#[track_caller]
fn check(before: &str, after: &str, expect: &[&str]) {
    let set = PolicySet::shipped().unwrap();
    let [before, after] = [before, after].map(|document| {
        let spec = testing::spec(document);
        let policy = resolve(&spec, &set, None).unwrap();
        let risk = rate(&policy, &spec, &set);
        (spec, policy, risk)
    });
    let shown: Vec<String> = compare(side(&before), side(&after))
        .iter()
        .filter(|change| !change.setting.starts_with("labels.") && !change.setting.starts_with("data."))
        .map(|change| {
            format!("{} {}: {} -> {}", change.setting, change.direction, change.before, change.after)
        })
        .collect();
    assert_eq!(shown, expect);
}

fn side((spec, policy, risk): &(ToolSpec, EffectivePolicy, Risk)) -> ToolVersion<'_> {
    ToolVersion { spec, policy, risk }
}

fn overrides(text: &str) -> String {
    testing::js(&format!("sandboxOverrides: {{{text}}}"))
}

#[test]
fn hosts_are_compared_by_what_they_cover() {
    let listed = |hosts: &str| overrides(&format!("networkMode: allowlist, hostsAllow: [{hosts}]"));
    check(&listed("a.org"), &listed("A.org"), &[]);
    check(&listed("a.org"), &listed("'*.a.org'"), &["network.hosts widened: a.org -> *.a.org"]);
    check(
        &listed("'*.a.org', b.org"),
        &listed("x.a.org"),
        &["network.hosts narrowed: *.a.org, b.org -> x.a.org"],
    );
    check(&listed("a.org"), &listed("b.org"), &["network.hosts changed: a.org -> b.org"]);
    check(
        &listed("a.org"),
        &listed("a.org, '*'"),
        &["network.hosts widened: a.org -> a.org, *", "risk widened: L3 -> L4"],
    );
}

/// `*` matches public hosts only: it excludes addresses of this machine or network.
#[test]
fn wildcard_host_does_not_include_private_hosts() {
    let listed = |hosts: &str| overrides(&format!("networkMode: allowlist, hostsAllow: [{hosts}]"));
    for host in ["127.0.0.1", "localhost", "10.1.2.3", "'::1'", "192.168.0.7", "169.254.169.254"] {
        let plain = host.trim_matches('\'');
        check(
            &listed("'*'"),
            &listed(host),
            &[&format!("network.hosts widened: * -> {plain}"), "risk narrowed: L4 -> L3"],
        );
        check(
            &listed("'*', a.org"),
            &listed(host),
            &[&format!("network.hosts widened: *, a.org -> {plain}"), "risk narrowed: L4 -> L3"],
        );
        check(
            &overrides("networkMode: strict"),
            &listed(host),
            &[
                "network.mode widened: strict -> allowlist",
                &format!("network.hosts widened: (none) -> {plain}"),
            ],
        );
    }
    check(
        &listed("127.0.0.1, '*'"),
        &listed("127.0.0.1"),
        &["network.hosts narrowed: 127.0.0.1, * -> 127.0.0.1", "risk narrowed: L4 -> L3"],
    );
}

/// Each of these removes the approval that the gateway requires from a document without settings.
#[test]
fn removed_approval_is_wider() {
    let command = |more: &str| testing::manifest("cli: {command: date}", more);
    let set = PolicySet::shipped().unwrap();
    let digest =
        |document: &str| crate::policy_digest(&resolve(&testing::spec(document), &set, None).unwrap());
    let lost = "approval.askFrom widened: gateway -> never";
    for (before, after, expect) in [
        (
            testing::PLAIN.to_owned(),
            testing::js("humanInTheLoop: {mode: DISABLED}"),
            vec![lost, "humanInTheLoop changed:  -> humanInTheLoop changed"],
        ),
        (
            testing::PLAIN.to_owned(),
            testing::js("x-toolgate-capability: {approval: {level: auto}}"),
            vec![lost],
        ),
        (command("{}"), command("capability: {approval: {level: auto}}"), vec![lost]),
    ] {
        check(&before, &after, &expect);
        assert_ne!(digest(&before), digest(&after), "{after}");
    }
    check(
        &testing::js("humanInTheLoop: {mode: DISABLED}"),
        &testing::js("humanInTheLoop: {mode: REQUIRED}"),
        &[
            "approval.level narrowed: auto -> always",
            "approval.askFrom narrowed: never -> gateway",
            "humanInTheLoop changed:  -> humanInTheLoop changed",
        ],
    );
}

#[test]
fn port_narrows_a_host_and_another_port_is_another_host() {
    let listed = |hosts: &str| overrides(&format!("networkMode: allowlist, hostsAllow: [{hosts}]"));
    check(&listed("a.org"), &listed("'a.org:443'"), &["network.hosts narrowed: a.org -> a.org:443"]);
    check(&listed("'a.org:443'"), &listed("a.org"), &["network.hosts widened: a.org:443 -> a.org"]);
    check(&listed("'a.org:443'"), &listed("'a.org:80'"), &["network.hosts changed: a.org:443 -> a.org:80"]);
    check(
        &listed("'*.a.org:443'"),
        &listed("'x.a.org:443'"),
        &["network.hosts narrowed: *.a.org:443 -> x.a.org:443"],
    );
    check(&listed("'*'"), &listed("'*:443'"), &["network.hosts narrowed: * -> *:443"]);
    check(&listed("'[2001:DB8::7]:443'"), &listed("'[2001:db8:0::7]:443'"), &[]);
}

#[test]
fn modes_are_compared_by_reach() {
    let star = overrides("networkMode: allowlist, hostsAllow: ['*']");
    check(
        &overrides("networkMode: strict"),
        &star,
        &[
            "network.mode changed: strict -> allowlist",
            "network.hosts changed: (none) -> *",
            "risk widened: L3 -> L4",
        ],
    );
    check(
        testing::PLAIN,
        &overrides("networkMode: allowlist"),
        &["network.mode changed: blocked -> allowlist"],
    );
    check(
        &overrides("networkMode: open"),
        &overrides("networkMode: strict"),
        &[
            "network.mode narrowed: open -> strict",
            "network.blockPrivateIPs narrowed: false -> true",
            "risk narrowed: L4 -> L3",
        ],
    );
    // `strict` does not reach private addresses.
    check(
        &overrides("networkMode: allowlist, hostsAllow: [10.0.0.1]"),
        &overrides("networkMode: strict"),
        &["network.mode changed: allowlist -> strict", "network.hosts changed: 10.0.0.1 -> (none)"],
    );
}

#[test]
fn paths_and_denials_are_compared() {
    let tool = |paths: &str, blocked: &str| {
        testing::manifest(
            "cli: {command: cat}",
            &format!("capability: {{execution: {{allowedPaths: [{paths}], blockedPaths: [{blocked}]}}}}"),
        )
    };
    check(
        &tool("$WORKSPACE/a", ""),
        &tool("$WORKSPACE", ""),
        &["files.allowedPaths widened: $WORKSPACE/a -> $WORKSPACE"],
    );
    check(&tool("/", ""), &tool("$HOME/x", ""), &["files.allowedPaths narrowed: / -> $HOME/x"]);
    check(&tool("$HOME", ""), &tool("/home/x", ""), &["files.allowedPaths changed: $HOME -> /home/x"]);
    check(&tool("/a", "/a/b"), &tool("/a", ""), &["files.blockedPaths widened: /a/b -> (none)"]);
}

#[test]
fn document_changes_are_reported() {
    check(
        testing::PLAIN,
        "{name: t, code: return 2, codeType: Javascript, description: other, params: [{name: x, type: STRING, required: false}], humanInTheLoop: {mode: REQUIRED}}",
        &[
            "approval.level narrowed: auto -> always",
            "description changed:  -> description changed",
            "params changed:  -> params changed",
            "code changed:  -> code changed",
            "humanInTheLoop changed:  -> humanInTheLoop changed",
        ],
    );
}

#[test]
fn every_setting_with_a_direction_has_one() {
    let set = PolicySet::shipped().unwrap();
    let policy = resolve(&testing::spec(testing::PLAIN), &set, None).unwrap();
    let without: Vec<&str> = policy
        .settings()
        .iter()
        .map(|setting| setting.name)
        .filter(|name| SettingReach::of(name, &SettingValues::of(&policy)).is_none())
        .collect();
    assert_eq!(without, ["profile", "javaInterop", "files.basePath", "data.sensitivity", "audit.logOutput"]);
}

#[test]
fn lost_limit_of_a_command_is_wider() {
    let command = |more: &str, args: &str| {
        let handler = format!("cli: {{command: ls, args: [{args}]{more}}}");
        testing::manifest(
            &handler,
            "input: {type: object, required: [x], properties: {x: {type: string}}}, testInput: {x: a}",
        )
    };
    let (plain, option) = ("'{x}'", "{value: '{x}', allowOption: true}");
    let alone = command(", childProcesses: false", plain);
    let code = "code changed:  -> code changed";
    check(&alone, &command("", plain), &["childProcesses widened: false -> true", code]);
    check(&command("", plain), &alone, &["childProcesses narrowed: true -> false", code]);
    let (without, with) = (command("", plain), command("", option));
    check(&without, &with, &["allowOption widened: 0 -> 1", code]);
    check(&with, &without, &["allowOption narrowed: 1 -> 0", code]);
    check(&with, &with, &[]);
}
