//! Encoded keywords are found at every alignment, in each alphabet, and covered completely.

use base64::{Engine as _, prelude::BASE64_STANDARD};

use super::*;

#[test]
fn fixed_characters_occur_in_every_encoding() {
    for prefix in ["", "a", "ab", "abc", "abcd"] {
        for (before, after) in [(b'0', b'9'), (0xff, 0xff), (0, 0)] {
            let mut bytes = vec![before; prefix.len()];
            bytes.extend_from_slice(b"ghp_");
            bytes.push(after);
            let text = BASE64_STANDARD.encode(&bytes);
            let fixed = fixed_base64(b"ghp_", prefix.len() % 3);
            assert!(
                fixed.iter().any(|fixed| memchr::memmem::find(text.as_bytes(), fixed).is_some()),
                "{text}"
            );
        }
    }
}

#[test]
fn short_keyword_is_found_whatever_surrounds_it() {
    for before in ["", "a", "ab", "\u{ff}"] {
        for after in (b' '..=b'~').chain(*b"\t\n\r") {
            let bytes = [before.as_bytes(), b"sk-", &[after], b"rest of it"].concat();
            let text = BASE64_STANDARD.encode(&bytes);
            let needles = base64_needles(b"sk-", 0);
            assert!(needles.iter().all(|needle| needle.text.len() >= MIN_NEEDLE));
            assert!(
                needles.iter().any(|needle| memchr::memmem::find(text.as_bytes(), &needle.text).is_some()),
                "{text}"
            );
        }
    }
}

#[test]
fn equal_alphabets_give_one_needle() {
    assert_eq!(fixed_base64(b"ghp_", 0).len(), 1);
    assert_eq!(fixed_base64(b"??>>", 0).len(), 2);
}

fn exact(text: &[u8]) -> Keyword {
    Keyword { text: text.into(), case: KeywordCase::Exact }
}

/// Every spelling occurs exactly once.
#[test]
fn case_insensitive_keyword_has_every_spelling() {
    let folded = |text: &[u8]| Keyword { text: text.into(), case: KeywordCase::Ignored }.beginnings();
    let mut spelled = folded(b"a-bcde");
    spelled.sort_unstable();
    let told: Vec<String> = spelled.iter().map(|one| String::from_utf8_lossy(one).into_owned()).collect();
    assert_eq!(told, ["A-BC", "A-Bc", "A-bC", "A-bc", "a-BC", "a-Bc", "a-bC", "a-bc"]);
    assert_eq!(folded(b"pwd").len(), 8);
    assert_eq!(exact(b"ghp_more").beginnings(), [b"ghp_more"]);
}

#[track_caller]
fn check_run(hay: &str, at: usize, offset: usize, expect: Option<(&str, &str)>) {
    let run = run(hay.as_bytes(), at, LiteralCoding::Base64 { offset }, &exact(b"ghp_"));
    let told = run.map(|run| {
        (hay[run.span.clone()].to_owned(), String::from_utf8_lossy(&run.decoded(hay.as_bytes())).into_owned())
    });
    assert_eq!(told, expect.map(|(span, text)| (span.to_owned(), text.to_owned())));
}

#[test]
fn run_extends_as_far_as_its_alphabet() {
    let text = BASE64_STANDARD.encode("ghp_0123456789abcdef");
    let bare = text.trim_end_matches('=');
    check_run(&format!("<{text}>"), 1, 0, Some((bare, "ghp_0123456789abcdef")));
}

#[test]
fn partial_keyword_is_not_a_run() {
    let binary = BASE64_STANDARD.encode(b"ghp_\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09");
    check_run(&binary, 0, 0, None);
    check_run("Z2hwX", 0, 0, None);
    check_run("", 0, 0, None);
}

#[test]
fn padding_is_covered_and_long_runs_are_covered_in_part() {
    let text = BASE64_STANDARD.encode("ghp_0123456789abcdef");
    let short = run(text.as_bytes(), 0, LiteralCoding::Base64 { offset: 0 }, &exact(b"ghp_")).unwrap();
    assert_eq!(short.covering(text.as_bytes(), &(0..4)), 0..text.len());
    let long = BASE64_STANDARD.encode(format!("{}ghp_0123456789abcdef", "x".repeat(6000)));
    let long_run = run(long.as_bytes(), 8000, LiteralCoding::Base64 { offset: 0 }, &exact(b"ghp_")).unwrap();
    assert_eq!(long_run.covering(long.as_bytes(), &(6000..6004)), 8000..8008);
}
