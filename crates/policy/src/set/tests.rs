use super::*;

#[track_caller]
fn check(baseline: &str, profiles: &[(&str, &str)], expect: &str) {
    let shown = match PolicySet::new(baseline, profiles.iter().copied()) {
        Ok(set) => set.profile_names().collect::<Vec<_>>().join(" "),
        Err(errors) => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "),
    };
    assert_eq!(shown, expect);
}

fn with(line: &str) -> String {
    let key = line.split(':').next().unwrap();
    let kept: Vec<&str> =
        PolicySet::SHIPPED_BASELINE.lines().filter(|kept| !kept.starts_with(&format!("{key}:"))).collect();
    format!("{}\n{line}\n", kept.join("\n"))
}

#[test]
fn shipped_policy_is_valid() {
    let set = PolicySet::shipped().unwrap();
    assert_eq!(
        set.profile_names().collect::<Vec<_>>(),
        ["careful", "files-editor", "offline", "read-only-files", "web-reader"]
    );
    assert_eq!(
        set.defaults_names().collect::<Vec<_>>(),
        ["read", "web_fetch", "write", "bash", "send_message"]
    );
    let baseline = set.baseline();
    assert_eq!((baseline.classes.allow.entries.len(), baseline.classes.deny.entries.len()), (5, 12));
    assert_eq!(baseline.memory_bytes.value, 64 * 1024 * 1024);
    assert_eq!(baseline.command_memory_bytes.value, 512 * 1024 * 1024);
}

/// A baseline from before commands had their own memory setting keeps its effect.
#[test]
fn baseline_without_command_memory_uses_its_memory_limit() {
    let shipped = PolicySet::SHIPPED_BASELINE;
    let older = shipped.replace("commandMemoryMib: 512\n", "").replace("memoryMib: 64", "memoryMib: 48");
    assert!(!older.contains("commandMemoryMib"), "{older}");
    let set = PolicySet::new(&older, PolicySet::SHIPPED_PROFILES.iter().copied()).unwrap();
    assert_eq!(set.baseline().memory_bytes.value, 48 * 1024 * 1024);
    assert_eq!(set.baseline().command_memory_bytes.value, 48 * 1024 * 1024);
    check(&with("commandMemoryMib: 0"), &[], "baseline: invalid value: integer `0`, expected a nonzero u32");
}

#[test]
fn baseline_must_be_complete_and_consistent() {
    check(
        &with("networks: blocked"),
        &[],
        "baseline: unknown field `networks`, expected one of `allowClasses`, `denyClasses`, `network`, `hostsAllow`, `fileRead`, `fileWrite`, `fsBasePath`, `maxStatements`, `timeoutMs`, `memoryMib`, `commandMemoryMib`, `askFrom`",
    );
    check("network: blocked", &[], "baseline: missing field `allowClasses`");
    check(
        &with("network: limited"),
        &[],
        "baseline: unknown variant `limited`, expected one of `blocked`, `allowlist`, `strict`, `open`",
    );
    check(&with("timeoutMs: 0"), &[], "baseline: timeoutMs `0` is not between 1 and 600000");
    check(
        &with("fsBasePath: ../up"),
        &[],
        "baseline: path `../up`: a path must be absolute or begin with `$WORKSPACE` or `$HOME`",
    );
    check(
        &with("fsBasePath: $WORKSPACE/*"),
        &[],
        "baseline: path `$WORKSPACE/*`: a base path must be one directory, without `*`",
    );
    check(
        &with("hostsAllow: ['http://x.org']"),
        &[],
        "baseline: host `http://x.org`: a host must not have a scheme or path",
    );
    check(
        &PolicySet::SHIPPED_BASELINE.replace("- java.math.*", "- java.math.*\n  - java.util.spi.*"),
        &[],
        "baseline: `java.util.spi.*` is both allowed and denied",
    );
    let twice = format!("{}network: open\n", PolicySet::SHIPPED_BASELINE);
    let errors = PolicySet::new(&twice, PolicySet::SHIPPED_PROFILES).unwrap_err();
    assert_eq!(errors[0].to_string(), "baseline: duplicate key `network` in one mapping");
}

#[test]
fn all_errors_of_all_profiles_are_reported() {
    let profiles = [
        ("a", "extends: b"),
        ("b", "extends: a"),
        ("c", "extends: nowhere"),
        ("d", "fileMode: write"),
        ("e", "hostAllow: [x.org]"),
        (" f", "{}"),
    ];
    check(
        PolicySet::SHIPPED_BASELINE,
        &profiles,
        "profile:d: unknown variant `write`, expected one of `off`, `read`, `readwrite` | profile:e: unknown field \
         `hostAllow`, expected one of `extends`, `addAllowClasses`, `addDenyClasses`, `network`, `hostsAllow`, \
         `fileMode`, `fsBasePath`, `maxStatements`, `timeoutMs`, `askFrom` | profile: f: a profile name must not be empty or have \
         surrounding spaces | profile:a: extends itself through `a` | profile:b: extends itself through `b` | \
         profile:c: extends `nowhere`, which does not exist",
    );
}

#[test]
fn duplicate_names_and_cycles_are_rejected() {
    check(PolicySet::SHIPPED_BASELINE, &[("a", "{}"), ("a", "{}")], "profile:a: duplicate profile name");
    check(PolicySet::SHIPPED_BASELINE, &[("a", "extends: a")], "profile:a: extends itself through `a`");
}

#[test]
fn profile_chain_is_limited_to_eight() {
    let texts: Vec<(String, String)> = (0..9)
        .map(|depth| {
            (format!("p{depth}"), if depth == 0 { "{}".into() } else { format!("extends: p{}", depth - 1) })
        })
        .collect();
    let borrowed: Vec<(&str, &str)> =
        texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    check(PolicySet::SHIPPED_BASELINE, &borrowed[..8], "p0 p1 p2 p3 p4 p5 p6 p7");
    check(PolicySet::SHIPPED_BASELINE, &borrowed, "profile:p8: extends more than 8 profiles deep");
}

#[test]
fn null_inherits() {
    check(
        PolicySet::SHIPPED_BASELINE,
        &[("a", "{network: null, hostsAllow: null, fileMode: null, extends: null}")],
        "a",
    );
}
