//! What each check takes and refuses.

use super::*;

#[track_caller]
fn check(check: Check, sound: &[&str], unsound: &[&str]) {
    for text in sound {
        assert!(matches!(check.judge(text.as_bytes(), &(0..text.len())), Judged::Sound), "{text}");
    }
    for text in unsound {
        let judged = check.judge(text.as_bytes(), &(0..text.len()));
        assert!(matches!(judged, Judged::Unsound | Judged::Refuted), "{text}");
    }
}

#[test]
fn checksums_of_tokens() {
    let token = format!("{}_{}", "ghp", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17");
    check(
        Check::Crc32,
        &[&token],
        &[&token.replace("17", "18"), &token.replace('z', "y"), "ghp_", "x", "a_0"],
    );
}

#[test]
fn tokens_in_three_parts() {
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl";
    check(Check::Jwt, &[jwt], &["eyJhbGciOiJIUzI1NiJ9", "e30.e30.x", "eyJhbGciOjF9.e30.x", "a.b.c", ""]);
}

#[test]
fn ids_that_name_an_account() {
    check(
        Check::AwsKeyId,
        &[concat!("AKIA", "IOSFODNN7EXAMPLE"), concat!("AKIA", "QYLPMN5HHHFPZAM2")],
        &["AKIA", concat!("AKIA", "7777777777777777"), "AKIAQ1"],
    );
}

#[test]
fn nested_documents_and_pairs() {
    check(Check::Base64Json, &["glc_eyJhIjoxfQ"], &["glc_AAAA", "glc_", "none"]);
    check(Check::BasicAuth, &["YWxpY2U6b3BlbiBzZXNhbWU="], &["YWxpY2U=", "AAAA", "?"]);
    check(Check::Discord, &["MTIzNDU2Nzg5MDEyMzQ1Njc4.a.b"], &["YWJj.a.b", "MTIz.a.b"]);
}

#[test]
fn values_that_are_no_literals() {
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
    ] {
        let (text, at) = value(text);
        let judged = Check::Assigned.judge(text.as_bytes(), &(at..at + 1));
        assert_eq!(matches!(judged, Judged::Extends(..)), expect, "{text}");
    }
}

#[test]
fn entropy_counts_characters() {
    for (text, expect) in [("", 0.0), ("aaaa", 0.0), ("abab", 1.0), ("abcd", 2.0)] {
        assert!((entropy(text.as_bytes()) - expect).abs() < 1e-9, "{text}");
    }
}
