use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use crate::{
    address::tests::{v4_networks, v6_networks},
    rules::HostRule,
};

fn strict() -> EgressRules {
    EgressRules { mode: EgressMode::Strict, ..EgressRules::blocked() }
}

fn open() -> EgressRules {
    EgressRules { mode: EgressMode::Open, guard_private: Guard::Off, ..EgressRules::blocked() }
}

fn listing(hosts: &[&str]) -> EgressRules {
    let rule = |host: &&str| match *host {
        "*" => HostRule::ANY,
        other => other
            .strip_prefix("*.")
            .map_or(HostRule::exact(other.into()), |below| HostRule::below(below.into())),
    };
    // `host/port`, because an address may contain colons.
    let rule = |host: &&str| match host.split_once('/') {
        Some((host, port)) => rule(&host).at_port(Some(port.parse().unwrap())),
        None => rule(host),
    };
    EgressRules {
        mode: EgressMode::Allowlist,
        hosts: hosts.iter().map(rule).collect(),
        ..EgressRules::blocked()
    }
}

/// The result for a host whose name resolves to these addresses.
fn fate(rules: &EgressRules, url: &str, answers: &[&str]) -> String {
    let target = match RequestTarget::parse(url) {
        Ok(target) => target,
        Err(error) => return error.slug().into(),
    };
    let listeners = Listeners::of_this_process();
    let judge = || {
        let admitted = admit(rules, &target, &listeners)?;
        match target.host() {
            TargetHost::Address(address) => admitted.judge_literal(*address),
            TargetHost::Name(_) => {
                let answers: Vec<IpAddr> = answers.iter().map(|answer| answer.parse().unwrap()).collect();
                admitted.judge_all(&answers)
            }
        }
    };
    match judge() {
        Ok(judged) => {
            let shown: Vec<_> = judged.iter().map(|addr| addr.socket().to_string()).collect();
            shown.join(" ")
        }
        Err(error) => error.slug().into(),
    }
}

#[track_caller]
fn check(rules: &EgressRules, url: &str, answers: &[&str], expect: &str) {
    assert_eq!(fate(rules, url, answers), expect, "{url} -> {answers:?} under {rules:?}");
}

#[test]
fn blocked_mode_and_empty_allow_list_allow_nothing() {
    check(&EgressRules::blocked(), "http://example.com/", &["8.8.8.8"], "network-blocked");
    check(&listing(&[]), "http://example.com/", &["8.8.8.8"], "host-not-in-allowlist");
    check(&listing(&[]), "http://8.8.8.8/", &[], "host-not-in-allowlist");
}

#[test]
fn allow_list_allows_its_hosts_only() {
    let rules = listing(&["a.com", "*.b.com"]);
    check(&rules, "http://a.com/", &["8.8.8.8"], "8.8.8.8:80");
    check(&rules, "https://x.b.com:8443/", &["8.8.8.8", "2001:4860::1"], "8.8.8.8:8443 [2001:4860::1]:8443");
    check(&rules, "http://c.com/", &["8.8.8.8"], "host-not-in-allowlist");
    check(&rules, "http://a.com.evil.org/", &["8.8.8.8"], "host-not-in-allowlist");
    check(&rules, "http://a.com/", &["8.8.8.8", "8.8.8.8"], "8.8.8.8:80");
}

#[test]
fn listed_name_with_private_address_is_refused() {
    let rules = listing(&["a.com"]);
    for inside in
        ["10.0.0.1", "127.0.0.1", "::1", "::ffff:192.168.0.1", "fd00::1", "64:ff9b::a00:1", "0.0.0.0"]
    {
        check(&rules, "http://a.com/", &[inside], "resolved-private-ip");
        check(&rules, "http://a.com/", &["8.8.8.8", inside], "resolved-private-ip");
    }
    check(&rules, "http://a.com/", &[], "dns-no-addresses");
    let unguarded = EgressRules { guard_private: Guard::Off, ..rules };
    check(&unguarded, "http://a.com/", &["10.0.0.1"], "10.0.0.1:80");
}

#[test]
fn listed_private_address_is_allowed_only_as_a_literal() {
    let rules = listing(&["a.com", "10.0.0.5"]);
    check(&rules, "http://10.0.0.5/", &[], "10.0.0.5:80");
    check(&rules, "http://0xa.5/", &[], "10.0.0.5:80");
    check(&rules, "http://[::ffff:a00:5]/", &[], "10.0.0.5:80");
    check(&rules, "http://10.0.0.6/", &[], "host-not-in-allowlist");
    check(&rules, "http://a.com/", &["10.0.0.5"], "resolved-private-ip");
    let in_strict = EgressRules { mode: EgressMode::Strict, ..rules };
    check(&in_strict, "http://10.0.0.5/", &[], "literal-private-ip");
}

#[test]
fn listed_localhost_allows_the_name_only() {
    let rules = listing(&["localhost"]);
    for literal in ["127.0.0.1", "127.8.9.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433"] {
        check(&rules, &format!("http://{literal}/"), &[], "host-not-in-allowlist");
    }
    check(&rules, "http://x.localhost/", &["127.0.0.1"], "host-not-in-allowlist");
    check(&rules, "http://localhost/", &["127.8.9.1"], "resolved-private-ip");
    check(&rules, "http://localhost/", &["127.0.0.1", "127.8.9.1"], "resolved-private-ip");
    check(&rules, "http://localhost/", &["127.0.0.1", "::1"], "127.0.0.1:80 [::1]:80");
    check(&rules, "http://LocalHost./", &["127.0.0.1"], "127.0.0.1:80");
    check(&rules, "http://localhost/", &["10.0.0.1"], "resolved-private-ip");
    check(&listing(&["*"]), "http://localhost/", &["127.0.0.1"], "resolved-private-ip");
    check(&listing(&["*.localhost"]), "http://localhost/", &["127.0.0.1"], "resolved-private-ip");
    check(&listing(&["a.com", "localhost"]), "http://a.com/", &["127.0.0.1"], "resolved-private-ip");
}

#[test]
fn host_with_a_port_is_reached_at_that_port_only() {
    let rules = listing(&["a.com/8443", "10.0.0.5/9200", "::1/9200", "localhost/3000", "*.b.com/80"]);
    check(&rules, "https://a.com:8443/", &["8.8.8.8"], "8.8.8.8:8443");
    for url in ["https://a.com/", "http://a.com:8080/", "http://x.b.com:81/"] {
        check(&rules, url, &["8.8.8.8"], "host-not-in-allowlist");
    }
    check(&rules, "http://x.b.com/", &["8.8.8.8"], "8.8.8.8:80");
    check(&rules, "http://10.0.0.5:9200/", &[], "10.0.0.5:9200");
    check(&rules, "http://10.0.0.5/", &[], "host-not-in-allowlist");
    check(&rules, "http://[::1]:9200/", &[], "[::1]:9200");
    check(&rules, "http://[::1]:9201/", &[], "host-not-in-allowlist");
    check(&rules, "http://localhost:3000/", &["127.0.0.1"], "127.0.0.1:3000");
    check(&rules, "http://localhost/", &["127.0.0.1"], "host-not-in-allowlist");
    // `*` with a port allows public hosts only, even if another rule names the host at another port.
    let star = listing(&["*/443", "10.0.0.5/9200"]);
    check(&star, "https://a.com/", &["8.8.8.8"], "8.8.8.8:443");
    check(&star, "http://a.com/", &["8.8.8.8"], "host-not-in-allowlist");
    check(&star, "https://10.0.0.5/", &[], "literal-private-ip");
    let unguarded = EgressRules { guard_private: Guard::Off, ..listing(&["*/443", "a.com/80"]) };
    check(&unguarded, "https://a.com/", &["10.0.0.1"], "resolved-private-ip");
    check(&unguarded, "http://a.com/", &["10.0.0.1"], "10.0.0.1:80");
}

#[test]
fn blocked_host_with_a_port_is_blocked_at_that_port_only() {
    let rules = EgressRules { blocked_hosts: listing(&["a.com/25", "9.9.9.9/53"]).hosts, ..open() };
    check(&rules, "http://a.com:25/", &["8.8.8.8"], "host-blocked");
    check(&rules, "http://a.com/", &["8.8.8.8"], "8.8.8.8:80");
    check(&rules, "http://b.com:53/", &["9.9.9.9"], "host-blocked");
    check(&rules, "http://b.com/", &["9.9.9.9"], "9.9.9.9:80");
}

#[test]
fn star_allows_public_hosts_only() {
    let rules = EgressRules { guard_private: Guard::Off, ..listing(&["*"]) };
    check(&rules, "http://anything.org/", &["8.8.8.8"], "8.8.8.8:80");
    check(&rules, "http://anything.org/", &["10.0.0.1"], "resolved-private-ip");
    check(&rules, "http://10.0.0.1/", &[], "literal-private-ip");
}

/// The kernel treats the unspecified address as loopback.
#[test]
fn blocked_loopback_is_not_reached_by_the_unspecified_address() {
    let blocked = |hosts: &[&str]| EgressRules { blocked_hosts: listing(hosts).hosts, ..open() };
    let v4 = blocked(&["127.0.0.1"]);
    for url in ["http://0.0.0.0/", "http://0/", "http://[::ffff:0.0.0.0]/", "http://[64:ff9b::]/"] {
        check(&v4, url, &[], "host-blocked");
    }
    check(&v4, "http://a.com/", &["0.0.0.0"], "host-blocked");
    check(&blocked(&["::1"]), "http://[::]/", &[], "host-blocked");
    check(&blocked(&["::1"]), "http://a.com/", &["::"], "host-blocked");
    check(&open(), "http://0.0.0.0/", &[], "0.0.0.0:80");
    check(&strict(), "http://0.0.0.0/", &[], "literal-private-ip");
    check(&strict(), "http://[::]/", &[], "literal-private-ip");
    check(&listing(&["localhost"]), "http://0.0.0.0/", &[], "host-not-in-allowlist");
}

#[test]
fn strict_mode_always_refuses_private_addresses() {
    let rules = EgressRules { guard_private: Guard::Off, ..strict() };
    check(&rules, "http://a.com/", &["10.0.0.1"], "resolved-private-ip");
    check(&open(), "http://a.com/", &["10.0.0.1"], "10.0.0.1:80");
    check(&open(), "http://127.0.0.1/", &[], "127.0.0.1:80");
    check(
        &EgressRules { guard_private: Guard::On, ..open() },
        "http://127.0.0.1/",
        &[],
        "literal-private-ip",
    );
}

#[test]
fn blocked_hosts_and_ports_win() {
    let blocked = vec![HostRule::below("evil.org".into()), HostRule::exact("9.9.9.9".into())];
    for rules in [open(), strict(), listing(&["*", "a.com", "x.evil.org", "9.9.9.9"])] {
        let rules = EgressRules { blocked_hosts: blocked.clone(), blocked_ports: vec![25, 6379], ..rules };
        check(&rules, "http://x.evil.org./", &["8.8.8.8"], "host-blocked");
        check(&rules, "http://9.9.9.9/", &[], "host-blocked");
        check(&rules, "http://a.com/", &["9.9.9.9"], "host-blocked");
        check(&rules, "http://a.com/", &["64:ff9b::909:909"], "host-blocked");
        check(&rules, "http://a.com:6379/", &["8.8.8.8"], "port-blocked");
    }
}

#[test]
fn metadata_is_refused_in_every_mode() {
    let listed = listing(&["169.254.169.254", "metadata.google.internal", "a.com", "169.254.170.2"]);
    let listed = EgressRules { guard_private: Guard::Off, ..listed };
    for rules in [open(), strict(), listed] {
        check(&rules, "http://169.254.169.254/latest/", &[], "metadata-endpoint");
        check(&rules, "http://0xa9fea9fe/", &[], "metadata-endpoint");
        check(&rules, "http://[::ffff:169.254.169.254]/", &[], "metadata-endpoint");
        check(&rules, "http://[fd00:ec2::254]/", &[], "metadata-endpoint");
        check(&rules, "http://metadata.google.internal./", &["8.8.8.8"], "metadata-endpoint");
        check(&rules, "http://a.com/", &["169.254.170.2"], "metadata-endpoint");
        check(&rules, "http://a.com/", &["8.8.8.8", "fd00:ec2::254"], "metadata-endpoint");
        check(&rules, "http://a.com/", &["168.63.129.16"], "metadata-endpoint");
    }
    let meant = EgressRules { guard_metadata: Guard::Off, ..open() };
    check(&meant, "http://169.254.169.254/", &[], "169.254.169.254:80");
}

#[test]
fn messages_do_not_reveal_resolved_addresses() {
    let rules = strict();
    let target = RequestTarget::parse("http://a.com/").unwrap();
    let listeners = Listeners::of_this_process();
    let admitted = admit(&rules, &target, &listeners).unwrap();
    let error = admitted.judge_all(&["10.11.12.13".parse().unwrap()]).unwrap_err();
    assert!(error.message.contains("`a.com`") && !error.message.contains("10.11"), "{error}");
}

/// All spellings of an IPv4 address that people, C libraries and attackers use.
fn notations(v4: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = v4.octets();
    let bits = u32::from(v4);
    let wide: String = v4.to_string().chars().map(|c| c.to_digit(10).map_or(c, fullwidth)).collect();
    let encoded: Vec<_> = v4.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect();
    vec![
        v4.to_string(),
        format!("{v4}."),
        format!("{bits}"),
        format!("{bits:#x}"),
        format!("0{bits:o}"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("{a}.{:#x}", bits & 0x00ff_ffff),
        format!("{a}.{b}.0{:o}", bits & 0xffff),
        wide,
        encoded.concat(),
        format!("[::ffff:{v4}]"),
        format!("[{}]", v4.to_ipv6_mapped()),
        format!("[::{v4}]"),
        format!("[64:ff9b::{v4}]"),
        format!("[64:ff9b:1::{v4}]"),
        format!("[2002:{:x}:{:x}::1]", bits >> 16, bits & 0xffff),
    ]
}

fn fullwidth(digit: u32) -> char {
    char::from_u32(0xff10 + digit).unwrap()
}

proptest! {
    #[test]
    fn strict_refuses_every_special_ipv4_in_every_notation(row in 0..v4_networks().len(), host: u32) {
        let (network, prefix) = v4_networks()[row];
        let mask = u32::MAX.checked_shr(prefix).unwrap_or(0);
        let address = Ipv4Addr::from(u32::from(network) | (host & mask));
        for written in notations(address) {
            let fate = fate(&strict(), &format!("http://{written}/"), &[]);
            prop_assert!(fate == "literal-private-ip" || fate == "metadata-endpoint", "{}: {}", written, fate);
        }
    }

    #[test]
    fn strict_refuses_every_special_ipv6(row in 0..v6_networks().len(), host: u128) {
        let (network, prefix) = v6_networks()[row];
        let mask = u128::MAX.checked_shr(prefix).unwrap_or(0);
        let address = Ipv6Addr::from(u128::from(network) | (host & mask));
        let fate = fate(&strict(), &format!("http://[{address}]/"), &[]);
        prop_assert!(fate == "literal-private-ip" || fate == "metadata-endpoint", "{}: {}", address, fate);
    }

    #[test]
    fn strict_mode_dials_the_checked_address(text in "[0-9a-fx.:\\[\\]%]{1,24}") {
        let url = format!("http://{text}/");
        let (rules, listeners) = (strict(), Listeners::of_this_process());
        let Ok(target) = RequestTarget::parse(&url) else { return Ok(()) };
        let TargetHost::Address(address) = target.host() else { return Ok(()) };
        if let Ok(admitted) = admit(&rules, &target, &listeners) {
            let judged = admitted.judge_literal(*address).unwrap();
            prop_assert!(judged.iter().all(|addr| special_range(addr.socket().ip()).is_none()));
        }
    }
}
