//! Accepted and rejected texts of each check.

use super::*;

#[track_caller]
fn check(check: RuleCheck, sound: &[&str], unsound: &[&str]) {
    for text in sound {
        assert!(
            matches!(
                check.judge(text.as_bytes(), &(0..text.len()), &MarkerSpans::default()),
                CheckResult::Sound
            ),
            "{text}"
        );
    }
    for text in unsound {
        let judged = check.judge(text.as_bytes(), &(0..text.len()), &MarkerSpans::default());
        assert!(matches!(judged, CheckResult::Unsound | CheckResult::Refuted), "{text}");
    }
}

#[test]
fn checksums_of_tokens() {
    let token = format!("{}_{}", "ghp", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17");
    check(
        RuleCheck::Crc32,
        &[&token],
        &[&token.replace("17", "18"), &token.replace('z', "y"), "ghp_", "x", "a_0"],
    );
}

#[test]
fn checksums_in_hex() {
    let token = format!("{}_{}", "glsa", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0m_2f7ac664");
    check(
        RuleCheck::Crc32Hex,
        &[&token, &token.replace("2f7ac664", "2F7AC664")],
        &[&token.replace("64", "65"), &token.replace('z', "y"), "glsa_", "x", "a_0"],
    );
}

/// Names made of words, digests and fillers are not keys. A key with a filler after it is still a key.
#[test]
fn keys_must_be_random() {
    check(
        RuleCheck::Random,
        &["md-gPzsnM30kB7h7cGqA_fkLO", "aB3dE6gH9jK2mN5pQ8"],
        &[
            "md-checkbox-group-item-12",
            "pa-House-Bill-1234-AMENDS-the-Code",
            "84a516841ba77a5b4648de2cd0dfcb30ea46dbb4",
            "aaaaaaaaaaaaaaaA1",
            "md-",
            "",
        ],
    );
    let (key, filler) = (format!("sk_live_{}", "aB3dE6gH9jK2mN5pQ8sT1uV4"), "x".repeat(90));
    let longer = format!("{key}{filler}");
    let fake = format!("sk_live_{filler}");
    check(RuleCheck::Unfilled, &[&key, &longer], &[&fake, ""]);
}

#[test]
fn tokens_with_an_application_number() {
    let application = format!("{}GIAOQAAAAAA", "A".repeat(21));
    let (digest, rest) =
        ("0RpnBvtA1r1XUmhGkDuxPt5WJDk", "IvGrv5iFlbCBFNOgmBjMtpsiaOclRz3AwzKsbVRJN9wVGFYGW2");
    let [written, plain] = ["%3D", "="].map(|sign| format!("{application}{digest}{sign}{rest}"));
    let glued = format!("{written}{rest}");
    check(
        RuleCheck::TwitterBearer,
        &[&written, &plain, &glued],
        &[
            &format!("{application}{digest}{rest}{rest}"),
            &format!("{application}{}%3D{rest}", "A".repeat(27)),
            &format!("{application}{digest}%3D{}", &rest[..30]),
            &format!("A{written}"),
            &"A".repeat(120),
            "AAAA",
        ],
    );
}

/// Binary files in base64 sometimes begin like tokens.
#[test]
fn tokens_inside_longer_base64_are_rejected() {
    let token = format!("EAA{}", "CdE6gH9jK2mN5pQ8sT1uV4wX7".repeat(4));
    for (text, expected) in [
        (format!("token=|{token}"), true),
        (format!("|{token}{}", "A".repeat(20)), true),
        (format!("iJdv//SInD+|{token}"), false),
        (format!("iJdv//SInD/|{token}"), false),
        (format!("|EAAAAAA{token}"), false),
    ] {
        let at = text.find('|').unwrap();
        let hay = text.replacen('|', "", 1);
        let judged = RuleCheck::Apart.judge(hay.as_bytes(), &(at..hay.len()), &MarkerSpans::default());
        assert_eq!(matches!(judged, CheckResult::Sound), expected, "{text}");
    }
}

#[test]
fn tokens_in_three_parts() {
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl";
    check(RuleCheck::Jwt, &[jwt], &["eyJhbGciOiJIUzI1NiJ9", "e30.e30.x", "eyJhbGciOjF9.e30.x", "a.b.c", ""]);
}

#[test]
fn ids_that_name_an_account() {
    check(
        RuleCheck::AwsKeyId,
        &[concat!("AKIA", "IOSFODNN7EXAMPLE"), concat!("AKIA", "QYLPMN5HHHFPZAM2")],
        &[
            "ASIAPACIFICNORTHEAST",
            "ASIALIGHTCARDFIXASIA",
            "AKIAAAAAAAAEAAAAAAAA",
            concat!("AKIA", "XXXXXXXXXXXXXXXX"),
            "AKIA",
            concat!("AKIA", "7777777777777777"),
            concat!("AKIA", "IOSFODNN8EXAMPLE"),
            "AKIAQ1",
        ],
    );
}

/// Names made of words, and digests after a word, are not keys. The letter of an escape is not a word.
#[test]
fn keys_without_a_structure() {
    let (key, small) = ("sk-aB3dE6gH9jK2mN5pQ8", "sk-ab3de6gh9jk2mn5pq8");
    check(
        RuleCheck::Varied,
        &[key, small, "sk-ABcdEFghIJklMN", "sk-proj-aB3d-E6gH_9jK2mN"],
        &["sk-xxxxxxxxxxxx", "sk-abcdefghijkl", "sk-proj-my-name-of-2026-x", "sk-aaaaAAAA1111", "sk-", ""],
    );
    for (before, text, expected) in [
        ("ta", key, true),
        ("ta", small, false),
        ("a ", small, true),
        ("_", small, true),
        ("a\\n", small, true),
    ] {
        let hay = format!("{before}{text}");
        let judged =
            RuleCheck::Varied.judge(hay.as_bytes(), &(before.len()..hay.len()), &MarkerSpans::default());
        assert_eq!(matches!(judged, CheckResult::Sound), expected, "{hay}");
    }
}

#[test]
fn nested_documents_and_pairs() {
    check(
        RuleCheck::Base64Json,
        &["glc_eyJhIjoxfQ", "sntrys_eyJhIjoxfQ==_aB3dE6gH9", "eyJhIjoxfQ"],
        &["glc_AAAA", "glc_", "none", "sntrys_eyJhIjoxf_aB3dE6gH9"],
    );
    check(RuleCheck::BasicAuth, &["YWxpY2U6b3BlbiBzZXNhbWU="], &["YWxpY2U=", "AAAA", "?"]);
    check(RuleCheck::Discord, &["MTIzNDU2Nzg5MDEyMzQ1Njc4.a.b"], &["YWJj.a.b", "MTIz.a.b"]);
}

#[test]
fn values_that_are_not_literals() {
    let value = |text: &str| text.find('|').map(|at| (text.replace('|', ""), at)).unwrap();
    for (text, expect) in [
        ("password=|hunter22", true),
        ("password=\"|correct horse 1\"", true),
        ("password=\"|never closed 1", false),
        ("password=|short", false),
        ("DB_PASSWORD=|lettersonly", true),
        ("password = |lettersonly", false),
        ("password = |config.value1", false),
        ("password = |read(1)", false),
        ("password = |${NAME1}", false),
        ("password = |$NAME", false),
        ("password = |{{ value1 }}", false),
        ("password = |Kind::Value1", false),
        ("password = \"|Enter your password\"", false),
        ("password = \"|********\"", false),
        ("password = |p4$$w0rd", true),
        ("secretName: |my-app-secret-v2", false),
        ("secret: |my-app-secret-v2", false),
        ("\"auth-token\": \"|^5.0.1\"", false),
        ("\"auth-token\": \"|6.0.0-beta.1\"", false),
        ("\"auth-token\": \"|123456\"", true),
        ("\"auth-token\": \"|1.2.3-Xk8Gl2MoiyR1fxX1\"", true),
        ("credentials: '|same-origin'", false),
        ("PrivateKeyDer:|:Pkcs8", false),
        ("\"password\": \"|[REDACTED]\"", false),
        ("\"password\": \"|[REDACTED]x1\"", true),
        ("ok\n--- PASS: |TestThing2", false),
        ("PASS: |thing2.sh", false),
        ("  PASS: |hunter22", true),
    ] {
        let (text, at) = value(text);
        let judged = RuleCheck::Assigned.judge(text.as_bytes(), &(at..at + 1), &MarkerSpans::default());
        assert_eq!(matches!(judged, CheckResult::Extends(..)), expect, "{text}");
    }
}

/// The text of the key that is found, or `None`.
#[track_caller]
fn check_key(check: RuleCheck, text: &str, expect: Option<&str>) {
    let at = text.find('|').unwrap();
    let text = text.replacen('|', "", 1);
    let until = text.get(at..).unwrap().find("-----\n").map_or(at + 1, |end| at + end + 5);
    let found = match check.judge(text.as_bytes(), &(at..until), &MarkerSpans::default()) {
        CheckResult::Extends(span, _) => text.get(span),
        _ => None,
    };
    assert_eq!(found, expect, "{text}");
}

#[test]
fn keys_that_a_search_printed() {
    let line = "Ab3".repeat(22);
    let header = format!("-----BEGIN PRIVATE {}-----", "KEY");
    for name in ["a.pem", "deep/er-2.x/a b.pem", "ä.pem"] {
        let block = format!("{header}\n{name}:2:{line}\n{name}-7-{line}");
        check_key(RuleCheck::Pem, &format!("x\n{name}:1:|{block}\nother.rs:1:fn main"), Some(&block));
        check_key(RuleCheck::Pem, &format!("{name}:1:|{header}\n{name}:2:is how keys begin"), None);
        let body = format!("{line}\n{name}:3:{line}\n{name}:4:Ab3==");
        check_key(RuleCheck::KeyBody, &format!("{name}:2:|{body}\nother.rs:1:fn main"), Some(&body));
    }
    // A time of day is not a name.
    let block = format!("{header}\n{line}\n{line}");
    check_key(RuleCheck::Pem, &format!("on 2026-01-02 at 03:04:|{block}"), Some(&block));
    let long = format!("{}/a.pem", "folder/".repeat(9));
    check_key(RuleCheck::Pem, &format!("{long}:1:|{header}\n{long}:2:-----END PRIVATE"), None);
}

#[test]
fn keys_in_logs() {
    let line = "Ab3".repeat(22);
    let header = format!("-----BEGIN PRIVATE {}-----", "KEY");
    for (first, next) in [
        ("2026-01-02T03:04:05.123456789Z ", "2026-01-02T03:04:05.12Z "),
        ("2026-01-02 03:04:05 ", "2026-01-02 03:04:06 "),
        ("Jan  2 03:04:05 host app[12]: ", "Jan 12 03:04:06 host app[12]: "),
        ("     9\t", "    10\t"),
    ] {
        let block = format!("{header}\n{next}{line}\n{next}{line}");
        check_key(RuleCheck::Pem, &format!("{first}|{block}\n{next}a sentence follows"), Some(&block));
        let body = format!("{line}\n{next}{line}\n{next}Ab3");
        check_key(RuleCheck::KeyBody, &format!("x\n{first}|{body}\n{next}a sentence follows"), Some(&body));
    }
}

/// Other processes write into the same log, and a truncated key has no end line.
#[test]
fn keys_in_logs_of_several_processes() {
    let line = "Ab3".repeat(22);
    let header = format!("-----BEGIN RSA PRIVATE {}-----", "KEY");
    for others in ["db: ready", "db: it is not ready yet!", "x\ny\nz\n3 requests in 7 ms"] {
        let body = format!("web: {line}\n").repeat(5);
        let block = format!("{header}\nweb: {line}\n{others}\n{body}web: Ab3=");
        check_key(RuleCheck::Pem, &format!("web: |{block}\ndb: that was it"), Some(&block));
        check_key(RuleCheck::Pem, &format!("web: |{block}\nweb: that was it"), Some(&block));
    }
    // The prefix of the lines changes or stops.
    for (second, third) in [("b: ", "b: "), ("b: ", "c.d/e: "), ("", "")] {
        let block = format!("{header}\na: {line}\n{second}{line}\n{third}{line}\n{third}Ab3=");
        check_key(RuleCheck::Pem, &format!("a: |{block}"), Some(&block));
    }
    // Too far away, or a path or a digest: not part of the key.
    let block = format!("{header}\nweb: {line}");
    for others in [
        format!("{}web: {line}", "a line of the database!\n".repeat(5)),
        format!("db: {}", "0123abcd".repeat(8)),
        format!("db: /srv/{}", "folder/".repeat(8)),
    ] {
        check_key(RuleCheck::Pem, &format!("web: |{block}\n{others}\n"), Some(&block));
    }
}

/// An empty line follows the headers of an encrypted key.
#[test]
fn encrypted_keys_in_a_log_that_trims_blanks() {
    let line = "Ab3".repeat(22);
    let header = format!("-----BEGIN RSA PRIVATE {}-----", "KEY");
    let body = format!("k: {line}\nk: {line}\nk: Ab3=");
    let info = "k: Proc-Type: 4,ENCRYPTED\nk: DEK-Info: AES-256-CBC,0123456789ABCDEF";
    for empty in ["k:", "k: ", "k:\r"] {
        let block = format!("{header}\n{info}\n{empty}\n{body}");
        check_key(RuleCheck::Pem, &format!("k: |{block}\nk: that was it"), Some(&block));
    }
}

#[test]
fn keys_without_their_header() {
    let line = "Ab3".repeat(22);
    let body = format!("{line}\n{line}\nAb3");
    check_key(RuleCheck::KeyBody, &format!("|{body}\nand prose"), Some(&body));
    check_key(RuleCheck::KeyBody, &format!("|{line}\nand prose"), Some(&line));
    check_key(RuleCheck::KeyBody, &format!("+|{body}\n"), Some(&body));
    check_key(
        RuleCheck::KeyBody,
        &format!("-|{}\n", body.replace('\n', "\n-")),
        Some(&body.replace('\n', "\n-")),
    );
    let escaped = body.replace('\n', "\\n");
    check_key(RuleCheck::KeyBody, &format!("key: \"|{escaped}\", next: \"value\""), Some(&escaped));
    check_key(RuleCheck::KeyBody, &format!("a\\n|{escaped}\\n"), Some(&escaped));
    // In the middle of other base64, or too short for a key.
    check_key(RuleCheck::KeyBody, &format!("Ab3|{body}"), None);
    check_key(RuleCheck::KeyBody, "|Ab3Ab3Ab3... and so on", None);
}

/// An attacker can insert an end line. Text next to a key in a file does not belong to it.
#[test]
fn keys_that_continue_after_an_end_line() {
    let line = "Ab3".repeat(22);
    let (header, end) =
        (format!("-----BEGIN PRIVATE {}-----", "KEY"), format!("-----END PRIVATE {}-----", "KEY"));
    let key = format!("{header}\n{line}\n{end}");
    for more in [
        format!("{line}\n{line}\n{end}"),
        format!("{line}\n{line}"),
        format!("Ab3Ab3==\n{end}"),
        format!("a comment (of two)\n{line}\n{end}"),
        format!("{end}\n{line}\n-----END\n{line}\n{end}"),
    ] {
        let block = format!("{key}\n{more}");
        check_key(RuleCheck::Pem, &format!("|{block}\nand prose"), Some(&block));
    }
    let hidden = format!("{header}\n{end}\n{line}\n{end}");
    check_key(RuleCheck::Pem, &format!("|{hidden}\nand prose"), Some(&hidden));
    for others in [
        format!("-----BEGIN CERTIFICATE-----\n{line}\n{line}\n-----END CERTIFICATE-----\n"),
        format!("-----BEGIN CERTIFICATE-----\n{line}\n{line}"),
        format!("public: {line}\n"),
        format!("ssh-rsa {line} ann@host\n"),
        format!("{} a.pem\n", "0123abcd".repeat(8)),
        format!("and its last line is {end}, as it says there\n"),
    ] {
        check_key(RuleCheck::Pem, &format!("|{key}\n{others}"), Some(&key));
    }
    check_key(RuleCheck::Pem, &format!("|{header}\n{end}\nand prose\n{end}"), None);
}

#[test]
fn members_of_a_key_in_any_order() {
    for (text, expect) in [
        (r#"{"kty":"EC","d":"|Ab3"}"#, true),
        (r#"{"d":"|Ab3","kid":"}","kty":"EC"}"#, true),
        (r#"{"d":"|Ab3","oth":[{"r":"x"}],"kty" : "RSA"}"#, true),
        (r#"{"oth":[{"kty":"x"}],"d":"|Ab3"}"#, true),
        (r#"{\"d\":\"|Ab3\",\"kty\":\"EC\"}"#, true),
        ("{'d': '|Ab3', 'kty': 'EC'}", true),
        (r#"{"d":"|Ab3"},{"kty":"EC"}"#, false),
        (r#"{"kty":"EC"},{"d":"|Ab3"}"#, false),
        (r#"{"d":"|Ab3","kind":"kty"}"#, false),
        (r#"{"d":"|Ab3"}"#, false),
        ("|Ab3", false),
    ] {
        let at = text.find('|').unwrap();
        let hay = text.replacen('|', "", 1);
        let judged = RuleCheck::Jwk.judge(hay.as_bytes(), &(at..at + 3), &MarkerSpans::default());
        assert_eq!(matches!(judged, CheckResult::Sound), expect, "{text}");
    }
}

#[test]
fn entropy_counts_characters() {
    for (text, expect) in [("", 0.0), ("aaaa", 0.0), ("abab", 1.0), ("abcd", 2.0)] {
        assert!((entropy(text.as_bytes()) - expect).abs() < 1e-9, "{text}");
    }
}
