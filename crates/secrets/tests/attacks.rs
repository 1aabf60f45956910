//! Texts made to make the detector slow, large or blind. What is slow here would not end within the test's patience.

use std::sync::{Arc, LazyLock};

use toolgate_secrets::{Detector, Tier};

#[expect(clippy::unwrap_used, reason = "a test fails loudly")]
static DETECTOR: LazyLock<Arc<Detector>> = LazyLock::new(|| Detector::shipped().unwrap());

fn token() -> String {
    format!("{}_{}", "ghp", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17")
}

/// More than a window of it: it ends, and no line is lost.
#[track_caller]
fn check_repeated(piece: &str) {
    let text = piece.repeat(600_000 / piece.len());
    let redacted = DETECTOR.redact(&text, Tier::Possible);
    assert_eq!(redacted.text.matches('\n').count(), text.matches('\n').count(), "{piece:?}");
}

/// A bound on work rather than on time: of each so much that a quadratic step would take hours.
#[test]
fn beginnings_without_ends() {
    for piece in [
        "ghp_",
        "eyJ",
        ".eyJ",
        "eyJ.eyJ",
        "xoxb-",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "x.pem:1:-----BEGIN PRIVATE KEY-----\n",
        "MIIEogIBAAKCAQEA",
        "=MIIEogIBAAKCAQEAabcdefghijkl",
        "\nMIIEogIBAAKCAQEAabcdefghijklmnopqrstuvwxyz01",
        "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAE",
        "password=",
        "password",
        "token",
        "secret ",
        "https://",
        "postgres://a:",
        "AccountKey=",
        "aws_secret_access_key ",
        "T3BlbkFJ",
        "sk-",
        "sk-proj-",
        "sk-ant-aB3",
        ".atlasv1.",
        "Q~",
        "1Q~",
        "%",
        "%25",
        "\\u005",
        "\\u005f",
        "&#",
        "&#95;",
        "\" + \"",
        "\n",
        " \n",
        "a\n",
        "a ",
        "a b ",
        " ",
        "\t",
        "[REDACTED:",
        "[REDACTED:token:github]",
        "Z2hwX",
        "WjJod1",
        "6768705f",
        "\u{200b}",
        "–",
        "curl ",
        "cookie: ",
        "machine a login ",
        "PuTTY-User-Key-File-2: a",
        "$ANSIBLE_VAULT;1.1;AES256\n",
        "token 0123456789abcdef",
    ] {
        check_repeated(piece);
    }
}

/// The same for runs that have no end themselves: a telling word at every turn, or what begins around a word.
#[test]
fn words_in_a_run() {
    for piece in [
        "token-vCq2LdxbkZmf",
        "secret-live-JU7PhTdPiYPQBcTDQavb",
        "token-sha1-vCq2LdxbkZmf",
        "sha1-token/vCq2LdxbkZmf9x2Kd1cIrjXn8OvnYozQ5YDXWsJD5JNfIsuCMs",
        "token@0123456789abcdef0123456789abcdef01234567",
        ":AAa",
        "123456789:AA",
    ] {
        check_repeated(piece);
    }
}

/// The same for keys: their ends, and members of those in JSON.
#[test]
fn ends_without_beginnings() {
    for piece in [
        "-----END PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\nx\n",
        "---- BEGIN SSH2 PRIVATE KEY ----",
        "\"d\":\"Ab3xQz9KAb3xQz9KAb3xQz9K\",",
        "\"d\":\"Ab3xQz9KAb3xQz9KAb3xQz9K\",\"kty\"",
    ] {
        check_repeated(piece);
    }
}

/// The same for names of which the value stands somewhere else.
#[test]
fn names_without_values() {
    for piece in [
        "\"password\",",
        "password\n",
        "password  ",
        "--password a1b2c3d4 ",
        "password=;",
        "a=1;password=;",
        "password:[\"a\",\"",
        "\"password\":{\"a\":1,\"b\":2,",
        "password:\n  - ",
        "<password>",
    ] {
        check_repeated(piece);
    }
}

/// Each lays the next one open once a mark stands in its place, or goes on in it.
#[test]
fn secrets_over_and_over() {
    for piece in [
        "-----BEGIN PRIVATE KEY-----\nAb3xQz9KAb3xQz9KAb3xQz9KAb3xQz9KAb3xQz9KAb3xQz9K\n",
        "-----BEGIN PRIVATE KEY-----\n(x)\nAb3xQz9KAb3xQz9KAb3xQz9KAb3xQz9KAb3xQz9KAb3xQz9K\n",
        "-----BEGIN PRIVATE KEY-----\nAb3xQz9KAb3xQz9KAb3xQz9KAb3xQz9KAb3xQz9KAb3xQz9K\n-----END PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\n-----END\nAb3xQz9KAb3xQz9KAb3xQz9KAb3xQz9KAb3xQz9KAb3xQz9K\n-----END\n",
        "-----BEGIN CERTIFICATE-----\nAb3xQz9KAb3xQz9KAb3xQz9KAb3xQz9KAb3xQz9KAb3xQz9K\n",
        concat!("dapi", "a3f09c7be1d24586a3f09c7be1d24586"),
        concat!("[REDACTED:token:github]", "dapi", "a3f09c7be1d24586a3f09c7be1d24586"),
        "bearer [REDACTED:token:github]a",
        "Bearer [REDACTED:token:github]Ab3xQz9KAb3xQz9KAb3xQz9K ",
        "datadog [REDACTED:token:github] a3f09c7be1d24586a3f09c7be1d24586 ",
        "\\ndapia3f09c7be1d24586",
    ] {
        check_repeated(piece);
    }
}

/// The next one is seen only once a mark stands in place of the one before it. However many there are, none is left, and whoever
/// looks again finds nothing.
#[test]
fn each_lays_the_next_one_open() {
    let token = concat!("xa", "pt-abcd1234-4e44-8fac-427b-066ff1e09d0c");
    let body = "urvaIB6Sf3+vd20vkUNYD3v86VkqKaXywbuV_BsZe0HFKC5Xj3nwqwS";
    let key = format!("{}{}\n{body}@", "-----BEGIN RSA PRI", "VATE KEY-----");
    for count in [17, 18, 40, 400] {
        for (piece, secret) in [
            (format!("{token}\u{1b}[0m"), token),
            (format!("{token}\u{1b}[m"), token),
            (format!("{token}\u{1b}(B"), token),
            (key.clone(), body),
        ] {
            let text = format!("it is {} and no more", piece.repeat(count));
            for tier in [Tier::Definite, Tier::Possible] {
                let once = DETECTOR.redact(&text, tier).text.into_owned();
                assert!(!once.contains(&secret[4..40]), "{count} of {piece:?}: {once:.2000}");
                assert!(once.ends_with(" and no more"), "{count} of {piece:?}: {once:.2000}");
                assert_eq!(DETECTOR.redact(&once, tier).findings, [], "{count} of {piece:?}");
                assert_eq!(once.matches('\n').count(), text.matches('\n').count());
            }
        }
    }
    // Past the border of a window, too.
    let text = format!("{token}\u{1b}[0m").repeat(16_000);
    let once = DETECTOR.redact(&text, Tier::Definite).text.into_owned();
    assert!(!once.contains(&token[5..]) && once.ends_with("\u{1b}[0m"), "{:?}", once.find(token));
    assert_eq!(DETECTOR.redact(&once, Tier::Definite).findings, []);
}

/// So many and so short ones that no patience is enough: nothing of such a text is left.
#[test]
fn ever_so_many_that_lay_the_next_one_open() {
    let rules = r#"{"rules": [{"id": "acme", "provider": "acme", "type": "token", "tier": "definite",
        "pattern": "\\bac_[0-9]{5}", "keywords": ["ac_"], "examples": {"hit": ["ac_12345"], "miss": ["ac_1"]}}]}"#;
    let file = toolgate_secrets::RuleFile { name: "acme.json", text: rules };
    let detector = Arc::new(Detector::from_files(&[file], &[]).unwrap());
    let lines = "plain\n".repeat(1_000);
    let text = format!("{}{lines}", "ac_12345\u{1b}[m".repeat(60_000));
    let redacted = detector.redact(&text, Tier::Definite);
    assert_eq!(redacted.text, format!("[REDACTED:token:acme]{}", "\n".repeat(1_000)));
    assert_eq!(redacted.findings.len(), 1);
    let mut stream = detector.stream(Tier::Definite);
    let mut streamed = stream.push(text.as_bytes());
    streamed.extend(stream.finish().0);
    assert_eq!(streamed, redacted.text.as_bytes());
}

/// Each of them may begin a key that has no header, and all that stands before it on its line may be what a log writes
/// before each line of one.
#[test]
fn lines_of_nothing_but_beginnings() {
    let beginning = format!("{}EEI{}", "MHcCAQ", "abcdefghijklmnopqrstuvwxyz01234");
    let signs = format!("{}EEI{}", "MHcCAQ", "+".repeat(31));
    for piece in [
        format!("{}\n", format!("{beginning},").repeat(100)),
        format!("{}\n", format!("{beginning};").repeat(100)),
        format!("{}\n", format!("{signs},").repeat(100)),
        format!("{beginning};"),
        format!("{beginning}\n"),
    ] {
        let text = piece.repeat(1_000_000 / piece.len());
        let redacted = DETECTOR.redact(&text, Tier::Possible);
        assert_eq!(redacted.text.matches('\n').count(), text.matches('\n').count(), "{piece:?}");
        assert!(!redacted.text.contains(&beginning), "{piece:?}");
    }
}

/// What begins within a finding is not looked at again; where it goes on behind the finding it has to be.
#[test]
fn keys_that_begin_within_what_was_found() {
    let first = format!("{}EEI{}", "MHcCAQ", "Ab3".repeat(18));
    let line = "Ab3x".repeat(16);
    let lines = |count: usize| format!("{line}\n").repeat(count);
    for text in [
        // Two keys, both of which are whole lines only.
        format!("{first}\n{}{first}\n{}", lines(60), lines(90)),
        format!("{first}\n{}{first}\n{}", lines(20), lines(96)),
        // The second has its lines without what stands before its first.
        format!("key: {first}\nkey: {first}\n{}", lines(5)),
    ] {
        let redacted = DETECTOR.redact(&text, Tier::Definite);
        assert!(!redacted.text.contains("Ab3"), "{}", redacted.text);
    }
}

#[test]
fn a_line_of_ten_megabytes() {
    let mut text = "abcdefgh ".repeat(600_000);
    text.push_str(&token());
    text.push_str(&" abcdefgh".repeat(600_000));
    let redacted = DETECTOR.redact(&text, Tier::Probable);
    assert_eq!(redacted.findings.len(), 1);
    assert!(!redacted.text.contains(&token()));
}

#[test]
fn base64_within_base64_within_base64() {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    let mut text = format!("it is {} ", token());
    for depth in 1..=2 {
        text = BASE64_STANDARD.encode(&text);
        let found = DETECTOR.contains(text.as_bytes(), Tier::Definite);
        assert!(found.is_some_and(|found| found.span.len() + 2 >= text.len()), "at depth {depth}");
    }
    for _ in 3..12 {
        text = BASE64_STANDARD.encode(&text);
    }
    DETECTOR.scan(&text);
}

#[test]
fn a_secret_deep_in_a_long_attachment() {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    let inner = format!("{}{}{}", "all work and no play ".repeat(4000), token(), " makes jack".repeat(9000));
    let text = BASE64_STANDARD.encode(&inner);
    let redacted = DETECTOR.redact(&text, Tier::Definite);
    assert_eq!(redacted.findings.len(), 1);
    let left: String = redacted.text.split('[').next().unwrap().to_owned();
    assert!(text.starts_with(&left) && left.len() > 100_000, "what lies before stays");
    assert!(DETECTOR.contains(redacted.text.as_bytes(), Tier::Definite).is_none());
}

#[test]
fn secrets_glued_to_each_other() {
    let key = format!("{}_{}", "sk_live", "0123456789abcdefABCDEFGH");
    for text in [
        format!("{0}{0}", token()),
        format!("x{}{key}", token()),
        format!("{key}.{}", token()),
        format!("AAAA{}AAAA", token()),
        format!("_{}_", token()),
    ] {
        let redacted = DETECTOR.redact(&text, Tier::Definite).text.into_owned();
        assert!(!redacted.contains(&token()[8..]), "{redacted}");
        assert!(!redacted.contains(&key[10..]), "{redacted}");
    }
}

/// The second begins within the first: neither's end may be left standing.
#[test]
fn secrets_that_overlap() {
    let text = format!("Bearer {}.tail-of-the-bearer-0123", token());
    let redacted = DETECTOR.redact(&text, Tier::Probable);
    assert_eq!(redacted.text, "Bearer [REDACTED:token:github]");
    assert_eq!(redacted.findings.len(), 1);
    assert_eq!(redacted.findings[0].tier, Tier::Definite);
}

#[test]
fn bytes_that_are_no_text() {
    let mut body = vec![0xff, 0xfe, 0x00, 0xc3];
    body.extend_from_slice(token().as_bytes());
    body.extend_from_slice(&[0x80, 0xe2, 0x80]);
    let found = DETECTOR.contains(&body, Tier::Definite).unwrap();
    assert_eq!(&*found.provider, "github");
    assert!(found.span.start <= 4 && found.span.end >= 44);
}

#[test]
fn a_body_names_its_surest_secret() {
    let body = format!("password = \"hunter22\"\n{}\npassword = \"hunter23\"", token());
    assert_eq!(DETECTOR.contains(body.as_bytes(), Tier::Possible).unwrap().tier, Tier::Definite);
    assert_eq!(DETECTOR.contains(b"nothing here", Tier::Possible), None);
}

/// A key block that never ends is taken out as it comes; nothing of it is kept, and nothing of it gets through.
#[test]
fn a_key_block_that_never_ends() {
    let mut stream = DETECTOR.stream(Tier::Definite);
    let mut out = stream.push(format!("before\n{}{}\n", "-----BEGIN PRI", "VATE KEY-----").as_bytes());
    let line = format!("{}\n", "MIIEvQIBADANBgkq".repeat(4));
    let lines = 40_000;
    for _ in 0..lines {
        out.extend(stream.push(line.as_bytes()));
    }
    out.extend(stream.push(b"-----END PRIVATE KEY-----\nafter the key, at last\n"));
    let (rest, findings) = stream.finish();
    out.extend(rest);
    let out = String::from_utf8(out).unwrap();
    assert!(
        out.starts_with("before\n[REDACTED:private-key:generic]\n")
            && out.ends_with("after the key, at last\n")
    );
    assert!(!out.contains("MIIE"));
    assert_eq!(out.lines().count(), 1 + 1 + lines + 1 + 1);
    assert_eq!(findings.len(), 1);
}

/// Nor does it end where something else stands on a line of its own, even if a window's border falls there.
#[test]
fn a_key_block_with_lines_of_others() {
    let line = format!("{}\n", "Ab3xQz9K".repeat(8));
    let others = "----- page 2 -----\n# (and a comment)\n";
    for shift in (0..120).step_by(7) {
        let before = "lorem ipsum\n".repeat(2000);
        let header = format!("{}{}\n", "-----BEGIN PRI", "VATE KEY-----");
        let lines = format!("{}{others}", line.repeat(9)).repeat(1000);
        let text = format!("{}{before}{header}{lines}-----END PRIVATE KEY-----\nafter\n", " ".repeat(shift));
        let redacted = DETECTOR.redact(&text, Tier::Definite);
        assert!(!redacted.text.contains("Ab3x"), "shifted by {shift}");
        assert!(redacted.text.ends_with("\nafter\n"));
        assert_eq!(redacted.findings.len(), 1, "shifted by {shift}");
    }
}

/// Wherever the border of a window falls, a secret on it is found.
#[test]
fn secrets_on_the_border_of_a_window() {
    for shift in [0, 1, 7, 20, 39, 40, 41] {
        let filler = "lorem ipsum ".repeat(60_000);
        let text = format!("{}{} {}", &filler[..(512 - 32) * 1024 - shift], token(), filler);
        let redacted = DETECTOR.redact(&text, Tier::Definite);
        assert_eq!(redacted.findings.len(), 1, "shifted by {shift}");
        assert!(!redacted.text.contains(&token()));
    }
}

#[test]
fn a_stream_gives_back_whole_characters() {
    let mut stream = DETECTOR.stream(Tier::Probable);
    let text = "größer – 𝚐 ".repeat(60_000);
    let mut out = Vec::new();
    for piece in text.as_bytes().chunks(1013) {
        let released = stream.push(piece);
        assert!(std::str::from_utf8(&released).is_ok());
        out.extend(released);
    }
    out.extend(stream.finish().0);
    assert_eq!(out, text.as_bytes());
}

#[test]
fn line_ends_keep_their_kind() {
    let key = format!(
        "{}{}\r\nMIIEvQIBADANBgkqMIIEvQIBADANBgkq\r\n-----END PRIVATE KEY-----\r\nafter\r\n",
        "-----BEGIN PRI", "VATE KEY-----"
    );
    let redacted = DETECTOR.redact(&key, Tier::Definite);
    assert_eq!(redacted.text, "[REDACTED:private-key:generic]\r\n\r\n\r\nafter\r\n");
}

#[test]
fn nothing_found_is_nothing_copied() {
    let redacted = DETECTOR.redact("plain text", Tier::Possible);
    assert!(matches!(redacted.text, std::borrow::Cow::Borrowed("plain text")));
}

#[test]
fn a_finding_never_tells_the_secret() {
    let found = DETECTOR.scan(&token());
    assert!(!format!("{found:?} {}", found[0]).contains("zQWB"));
    assert_eq!(found[0].to_string(), "definite token of github (plain)");
}
