//! Texts that try to make the detector slow, large or blind. Quadratic work would exceed the test's time limit.

use std::sync::{Arc, LazyLock};

use toolgate_secrets::{Detector, Tier};

#[expect(clippy::unwrap_used, reason = "a test fails loudly")]
static DETECTOR: LazyLock<Arc<Detector>> = LazyLock::new(|| Detector::shipped().unwrap());

fn token() -> String {
    format!("{}_{}", "ghp", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17")
}

/// More than a window of it: the scan ends, and all lines are kept.
#[track_caller]
fn check_repeated(piece: &str) {
    let text = piece.repeat(600_000 / piece.len());
    let redacted = DETECTOR.redact(&text, Tier::Possible);
    assert_eq!(redacted.text.matches('\n').count(), text.matches('\n').count(), "{piece:?}");
}

/// Limits work rather than time: with this size a quadratic step would take hours.
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

/// The same for endless runs: a keyword at every position, or a beginning around a keyword.
#[test]
fn keywords_in_a_run() {
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

/// The same for keys: their ends, and members of JSON keys.
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

/// The same for names whose value is elsewhere.
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

/// The marker of each secret reveals or continues the next one.
#[test]
fn repeated_secrets() {
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

/// Each secret becomes visible only after the previous one is redacted. All of them must be redacted, and a second scan
/// must find nothing.
#[test]
fn secrets_that_reveal_each_other_are_all_redacted() {
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
    // Also across a window boundary.
    let text = format!("{token}\u{1b}[0m").repeat(16_000);
    let once = DETECTOR.redact(&text, Tier::Definite).text.into_owned();
    assert!(!once.contains(&token[5..]) && once.ends_with("\u{1b}[0m"), "{:?}", once.find(token));
    assert_eq!(DETECTOR.redact(&once, Tier::Definite).findings, []);
}

/// Too many short ones to resolve: the rest of such a text is redacted completely.
#[test]
fn too_many_revealed_secrets_redact_the_rest() {
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

/// Each may begin a key without a header, and the text before it on the line may be a log prefix.
#[test]
fn lines_of_key_beginnings() {
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

/// A beginning within a finding is not searched again, unless it continues behind the finding.
#[test]
fn keys_that_begin_within_a_finding() {
    let first = format!("{}EEI{}", "MHcCAQ", "Ab3".repeat(18));
    let line = "Ab3x".repeat(16);
    let lines = |count: usize| format!("{line}\n").repeat(count);
    for text in [
        // Two keys that consist of whole lines only.
        format!("{first}\n{}{first}\n{}", lines(60), lines(90)),
        format!("{first}\n{}{first}\n{}", lines(20), lines(96)),
        // The lines of the second one lack the prefix of its first line.
        format!("key: {first}\nkey: {first}\n{}", lines(5)),
    ] {
        let redacted = DETECTOR.redact(&text, Tier::Definite);
        assert!(!redacted.text.contains("Ab3"), "{}", redacted.text);
    }
}

#[test]
fn line_of_ten_megabytes() {
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
fn secret_in_a_long_attachment() {
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
fn adjacent_secrets() {
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

/// The second begins within the first: both ends must be redacted.
#[test]
fn overlapping_secrets() {
    let text = format!("Bearer {}.tail-of-the-bearer-0123", token());
    let redacted = DETECTOR.redact(&text, Tier::Probable);
    assert_eq!(redacted.text, "Bearer [REDACTED:token:github]");
    assert_eq!(redacted.findings.len(), 1);
    assert_eq!(redacted.findings[0].tier, Tier::Definite);
}

#[test]
fn bytes_that_are_not_text() {
    let mut body = vec![0xff, 0xfe, 0x00, 0xc3];
    body.extend_from_slice(token().as_bytes());
    body.extend_from_slice(&[0x80, 0xe2, 0x80]);
    let found = DETECTOR.contains(&body, Tier::Definite).unwrap();
    assert_eq!(&*found.provider, "github");
    assert!(found.span.start <= 4 && found.span.end >= 44);
}

#[test]
fn body_reports_its_most_certain_secret() {
    let body = format!("password = \"hunter22\"\n{}\npassword = \"hunter23\"", token());
    assert_eq!(DETECTOR.contains(body.as_bytes(), Tier::Possible).unwrap().tier, Tier::Definite);
    assert_eq!(DETECTOR.contains(b"nothing here", Tier::Possible), None);
}

/// An endless key block is redacted as it arrives; no part of it is kept or released.
#[test]
fn endless_key_block() {
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

/// A key block continues behind foreign lines, even at a window boundary.
#[test]
fn key_block_with_foreign_lines() {
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

/// A secret on a window boundary is found.
#[test]
fn secrets_on_a_window_boundary() {
    for shift in [0, 1, 7, 20, 39, 40, 41] {
        let filler = "lorem ipsum ".repeat(60_000);
        let text = format!("{}{} {}", &filler[..(512 - 32) * 1024 - shift], token(), filler);
        let redacted = DETECTOR.redact(&text, Tier::Definite);
        assert_eq!(redacted.findings.len(), 1, "shifted by {shift}");
        assert!(!redacted.text.contains(&token()));
    }
}

#[test]
fn stream_returns_whole_characters() {
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
fn text_without_findings_is_borrowed() {
    let redacted = DETECTOR.redact("plain text", Tier::Possible);
    assert!(matches!(redacted.text, std::borrow::Cow::Borrowed("plain text")));
}

#[test]
fn finding_never_contains_the_secret() {
    let found = DETECTOR.scan(&token());
    assert!(!format!("{found:?} {}", found[0]).contains("zQWB"));
    assert_eq!(found[0].to_string(), "definite token of github (plain)");
}
