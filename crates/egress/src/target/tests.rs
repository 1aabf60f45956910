use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(url: &str, expect: &str) {
    let found = match RequestTarget::parse(url) {
        Ok(target) => format!("{} {} {}", target.host(), target.port(), target.url()),
        Err(error) => error.slug().to_owned(),
    };
    assert_eq!(found, expect, "{url}");
}

#[test]
fn url_is_normalized() {
    check("https://Example.COM/a?b#c", "example.com 443 https://example.com/a?b");
    check("http://example.com.:8080/", "example.com 8080 http://example.com:8080/");
    check("http://b\u{fc}cher.example/", "xn--bcher-kva.example 80 http://xn--bcher-kva.example/");
    check("http://[2001:4860::1]:81/", "2001:4860::1 81 http://[2001:4860::1]:81/");
    check("http:/\\example.com\\@evil.org/", "example.com 80 http://example.com/@evil.org/");
    check("http:example.com", "example.com 80 http://example.com/");
}

#[test]
fn every_notation_of_an_address_is_recognised() {
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0x7F.1",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "127%2e0%2e0%2e1",
        "\u{ff11}\u{ff12}\u{ff17}.\u{ff10}.0.1",
        "127\u{3002}0\u{ff0e}0\u{ff61}1",
        "\u{2460}\u{2461}\u{2466}.0.0.1",
        "[::ffff:7f00:1]",
        "[::ffff:127.0.0.1]",
        "[0:0:0:0:0:ffff:7f00:0001]",
    ] {
        check(&format!("http://{host}/"), "127.0.0.1 80 http://127.0.0.1/");
    }
}

#[test]
fn invalid_urls_are_refused() {
    for (url, slug) in [
        ("", "invalid-url"),
        ("/relative", "invalid-url"),
        ("http://", "missing-host"),
        ("http:///", "missing-host"),
        ("http://./", "missing-host"),
        ("https://:443/", "missing-host"),
        ("ftp://example.com/", "unsupported-scheme"),
        ("file:///etc/passwd", "unsupported-scheme"),
        ("gopher://127.0.0.1:6379/_x", "unsupported-scheme"),
        ("javascript:alert(1)", "unsupported-scheme"),
        ("data:text/plain,x", "unsupported-scheme"),
        ("ws://example.com", "unsupported-scheme"),
        ("http://user@example.com/", "userinfo-in-url"),
        ("http://:pw@example.com/", "userinfo-in-url"),
        ("http://example.com:80@evil.org/", "userinfo-in-url"),
        ("http://example.com:0/", "port-blocked"),
        ("http://example.com:65536/", "invalid-url"),
        ("http://exa\tmple.com/", "invalid-url"),
        ("http://example.com/\r\nHost: evil", "invalid-url"),
        ("http://example.com/\u{85}", "invalid-url"),
        ("http://example.com%00.evil.org/", "invalid-url"),
        ("http://example.com%0d%0a/", "invalid-url"),
        ("http://256.1.1.1/", "invalid-url"),
        ("http://1.2.3.4.5/", "invalid-url"),
        ("http://0x100000000/", "invalid-url"),
        ("http://08.1.1.1/", "invalid-url"),
        ("http://[fe80::1%25eth0]/", "invalid-url"),
        ("http://[fe80::1%eth0]/", "invalid-url"),
        ("http://[::1/", "invalid-url"),
        ("http://a..b/", "invalid-url"),
        ("http://.a/", "invalid-url"),
        ("http://a,b.com/", "invalid-url"),
        ("http://a;b.com/", "invalid-url"),
        ("http://$(id).com/", "invalid-url"),
        ("http://xn--/", "invalid-url"),
    ] {
        check(url, slug);
    }
    check(&format!("http://{}.com/", "a".repeat(64)), "invalid-url");
    check(&format!("http://{}com/", "abc.".repeat(70)), "invalid-url");
}

#[test]
fn origin_is_scheme_host_and_port() {
    let parse = |url: &str| RequestTarget::parse(url).unwrap();
    let home = parse("https://a.com/x");
    assert!(home.shares_origin_with(&parse("https://A.com.:443/y")));
    for other in ["http://a.com/", "https://b.a.com/", "https://a.com:444/", "http://a.com:443/"] {
        assert!(!home.shares_origin_with(&parse(other)), "{other}");
    }
}

#[test]
fn journal_url_has_no_query() {
    let target = RequestTarget::parse("https://a.com/x?key=secret").unwrap();
    assert_eq!(for_journal(&target.url), "https://a.com/x");
    assert_eq!(target.path_and_query(), "/x?key=secret");
}

#[test]
fn journal_url_has_no_credentials() {
    for (url, expect) in [
        ("https://me:secret@a.com/x?key=secret#secret", "https://a.com/x"),
        ("ftp://secret@a.com/x", "ftp://a.com/x"),
        ("file:///etc/passwd?secret", "file:///etc/passwd"),
    ] {
        assert_eq!(for_journal(&Url::parse(url).unwrap()), expect);
    }
}

proptest! {
    #[test]
    fn parsing_never_panics_and_is_stable(text in "\\PC*|(https?:)?/{0,3}[0-9a-fxA-F.:@%\\[\\]]{0,40}(/.*)?") {
        if let Ok(target) = RequestTarget::parse(&text) {
            let again = RequestTarget::parse(target.url().as_str()).unwrap();
            prop_assert_eq!(again.host(), target.host());
            prop_assert_eq!(again.port(), target.port());
            prop_assert!(target.authority().bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert!(target.path_and_query().bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }
}
