use super::*;

#[track_caller]
fn check(rule: &HostRule, covers: &[&str], misses: &[&str]) {
    let host = |url: &&str| Target::parse(&format!("http://{url}/")).unwrap().host().clone();
    for covered in covers {
        assert!(rule.covers(&host(covered)), "{rule:?} should cover {covered}");
    }
    for missed in misses {
        assert!(!rule.covers(&host(missed)), "{rule:?} should not cover {missed}");
    }
}

#[test]
fn rules_cover_what_they_say() {
    check(
        &HostRule::Exact("API.example.com.".into()),
        &["api.example.com", "API.Example.Com.", "%61pi.example.com"],
        &["example.com", "x.api.example.com", "api.example.com.evil.org", "apixexample.com"],
    );
    check(
        &HostRule::Below("example.com".into()),
        &["example.com", "a.example.com", "a.b.example.com."],
        &["evilexample.com", "example.com.evil.org", "com"],
    );
    check(
        &HostRule::Above("docs".into()),
        &["docs.rs", "docs.example.org"],
        &["docs", "docs.", "mydocs.rs", "docsx.rs"],
    );
    check(&HostRule::Any, &["a", "1.2.3.4", "[2001:4860::1]"], &[]);
}

#[test]
fn addresses_are_named_by_value_and_have_no_labels() {
    check(&HostRule::Exact("10.0.0.1".into()), &["10.0.0.1", "0xa000001", "[::ffff:a00:1]"], &["10.0.0.2"]);
    check(&HostRule::Exact("::1".into()), &["[::1]", "[0:0::1]"], &["127.0.0.1"]);
    check(&HostRule::Below("0.1".into()), &[], &["127.0.0.1"]);
    check(&HostRule::Above("127".into()), &[], &["127.0.0.1"]);
}

#[test]
fn an_empty_rule_covers_nothing() {
    for rule in
        [HostRule::Exact(String::new()), HostRule::Below(String::new()), HostRule::Above(String::new())]
    {
        check(&rule, &[], &["a.com", "com", "1.2.3.4"]);
    }
}

#[test]
fn a_url_is_judged_without_a_network() {
    let rules = Rules { mode: Mode::Strict, ..Rules::blocked() };
    let judge = |url: &str| rules.judge_host(&crate::parse_url(url).unwrap()).map_err(|error| error.slug());
    assert_eq!(judge("https://example.com/"), Ok(()));
    assert_eq!(judge("https://127.1/"), Err("literal-private-ip"));
    let foreign = Url::parse("ftp://example.com/").unwrap();
    assert_eq!(rules.judge_host(&foreign).unwrap_err().slug(), "unsupported-scheme");
}
