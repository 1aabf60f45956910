use super::*;

#[track_caller]
fn check(rule: &HostRule, covers: &[&str], misses: &[&str]) {
    let host = |url: &&str| RequestTarget::parse(&format!("http://{url}/")).unwrap().host().clone();
    for covered in covers {
        assert!(rule.covers(&host(covered), 80), "{rule:?} should cover {covered}");
    }
    for missed in misses {
        assert!(!rule.covers(&host(missed), 80), "{rule:?} should not cover {missed}");
    }
}

#[test]
fn rules_match_their_hosts() {
    check(
        &HostRule::exact("API.example.com.".into()),
        &["api.example.com", "API.Example.Com.", "%61pi.example.com"],
        &["example.com", "x.api.example.com", "api.example.com.evil.org", "apixexample.com"],
    );
    check(
        &HostRule::below("example.com".into()),
        &["example.com", "a.example.com", "a.b.example.com."],
        &["evilexample.com", "example.com.evil.org", "com"],
    );
    check(
        &HostRule::above("docs".into()),
        &["docs.rs", "docs.example.org"],
        &["docs", "docs.", "mydocs.rs", "docsx.rs"],
    );
    check(&HostRule::ANY, &["a", "1.2.3.4", "[2001:4860::1]"], &[]);
}

#[test]
fn addresses_match_by_value_without_wildcards() {
    check(&HostRule::exact("10.0.0.1".into()), &["10.0.0.1", "0xa000001", "[::ffff:a00:1]"], &["10.0.0.2"]);
    check(&HostRule::exact("::1".into()), &["[::1]", "[0:0::1]"], &["127.0.0.1"]);
    check(&HostRule::below("0.1".into()), &[], &["127.0.0.1"]);
    check(&HostRule::above("127".into()), &[], &["127.0.0.1"]);
}

#[test]
fn rule_with_a_port_covers_that_port_only() {
    let rules = [
        HostRule::exact("a.com".into()),
        HostRule::below("a.com".into()),
        HostRule::ANY,
        HostRule::above("a".into()),
    ];
    let host = TargetHost::Name("a.com".into());
    for rule in rules {
        assert!(rule.covers(&host, 80) && rule.covers(&host, 8443));
        let rule = rule.at_port(Some(8443));
        assert!(rule.covers(&host, 8443) && !rule.covers(&host, 80), "{rule:?}");
    }
}

#[test]
fn empty_rule_matches_nothing() {
    for rule in
        [HostRule::exact(String::new()), HostRule::below(String::new()), HostRule::above(String::new())]
    {
        check(&rule, &[], &["a.com", "com", "1.2.3.4"]);
    }
}

#[test]
fn url_is_checked_without_network_access() {
    let rules = EgressRules { mode: EgressMode::Strict, ..EgressRules::blocked() };
    let judge = |url: &str| rules.judge_host(&crate::parse_url(url).unwrap()).map_err(|error| error.slug());
    assert_eq!(judge("https://example.com/"), Ok(()));
    assert_eq!(judge("https://127.1/"), Err("literal-private-ip"));
    let foreign = Url::parse("ftp://example.com/").unwrap();
    assert_eq!(rules.judge_host(&foreign).unwrap_err().slug(), "unsupported-scheme");
}
