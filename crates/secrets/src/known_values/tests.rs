use std::sync::Arc;

use super::*;
use crate::Detector;

const PASSWORD: &str = "q7Zk-2mVx9T";

#[track_caller]
fn check_gone(text: &str, secret: &str) {
    let detector = Detector::shipped().unwrap();
    let redacted = detector.redact(text, Tier::Probable);
    assert!(!redacted.text.contains(secret), "{}", redacted.text);
    assert_eq!(detector.redact(&redacted.text, Tier::Probable).findings, []);
    let mut stream = detector.stream(Tier::Probable);
    let mut streamed = stream.push(text.as_bytes());
    streamed.extend(stream.finish().0);
    assert_eq!(String::from_utf8(streamed).unwrap(), redacted.text, "a stream gives the same");
}

#[test]
fn value_is_redacted_in_the_rest_of_the_text() {
    check_gone(&format!("DB_PASSWORD={PASSWORD}\nconnecting with {PASSWORD} to db\n"), PASSWORD);
}

#[test]
fn value_is_redacted_before_its_name() {
    check_gone(&format!("connecting with {PASSWORD} to db\nDB_PASSWORD={PASSWORD}\n"), PASSWORD);
}

#[test]
fn url_password_is_redacted_in_decoded_form() {
    check_gone(&format!("acme://app:{PASSWORD}@db/x\nlogin as app / {PASSWORD}\n"), PASSWORD);
    let text = "acme://app:q7Zk%402mVx9T@db/x\nlogin as app / q7Zk@2mVx9T\n";
    check_gone(text, "q7Zk@2mVx9T");
}

#[test]
fn many_values_are_searched_at_once() {
    let named: Vec<String> = (0..40).map(|at| format!("DB_PASSWORD=q7Zk2mVx9T{at}")).collect();
    let bare: Vec<String> = (0..40).map(|at| format!("trying q7Zk2mVx9T{at}")).collect();
    let (named, bare) = (named.join("\n"), bare.join(", "));
    check_gone(&format!("{bare}\n{named}"), "q7Zk2mVx9T");
}

#[test]
fn short_and_common_values_are_not_repeated() {
    let detector = Detector::shipped().unwrap();
    for (value, rest) in [
        ("testword", "a testword in a sentence"),
        ("administrator", "ask the administrator"),
        ("hunter22", "hunter220 and xhunter22"),
        ("aaaa11", "aaaa11 again"),
        ("Ed25519", "use Ed25519 here"),
        ("Version2", "const Version2 = 1;"),
    ] {
        let text = format!("DB_PASSWORD={value}\n{rest}\n");
        assert!(detector.redact(&text, Tier::Probable).text.ends_with(&format!("\n{rest}\n")), "{value}");
    }
}

#[test]
fn stream_knows_values_of_earlier_windows() {
    let detector = Detector::shipped().unwrap();
    let filler = "nothing to see here\n".repeat(60_000);
    let text = format!("DB_PASSWORD={PASSWORD}\n{filler}connecting with {PASSWORD}\n");
    let mut stream = detector.stream(Tier::Probable);
    let mut out = Vec::new();
    for piece in text.as_bytes().chunks(4096) {
        out.extend(stream.push(piece));
    }
    out.extend(stream.finish().0);
    assert!(!String::from_utf8(out).unwrap().contains(PASSWORD));
}

#[test]
fn repeats_before_a_later_window_are_redacted() {
    let detector = Detector::shipped().unwrap();
    let filler = "nothing to see here\n".repeat(60_000);
    let text = format!("connecting with {PASSWORD}\n{filler}DB_PASSWORD={PASSWORD}\n");
    assert!(!detector.redact(&text, Tier::Probable).text.contains(PASSWORD));
}

#[test]
fn values_are_shared_between_texts() {
    let detector: Arc<Detector> = Detector::shipped().unwrap();
    let mut known = KnownValues::default();
    detector.redact_knowing(&format!("DB_PASSWORD={PASSWORD}"), Tier::Probable, &mut known);
    let text = format!("connecting with {PASSWORD}");
    assert_eq!(
        detector.redact_knowing(&text, Tier::Probable, &mut known).text,
        "connecting with [REDACTED:password:generic]"
    );
    assert_eq!((known.len(), format!("{known:?}").contains(PASSWORD)), (1, false));
}

/// An attacker's text is echoed next to a secret. It declares a guessed end of the secret plus the following text as a
/// password.
#[test]
fn echoed_guess_does_not_reveal_a_part_of_a_secret() {
    let detector = Detector::shipped().unwrap();
    let secret = "s3cr3tPw9kQ";
    let hosts = "@db1.internal.example:5432/shop";
    let texts = [
        format!("connecting to postgres://app:{secret}{hosts}\n"),
        format!("DB_PASSWORD={secret}\nlogin as {secret} to db1 now\n"),
        format!("DB_PASSWORD={secret}\nlogin as {secret}.db1.internal.example\n"),
    ];
    for text in &texts {
        for behind in [hosts, " to db1 now", ".db1.internal.example"] {
            for from in 1..secret.len() {
                let right = format!("{}{behind}", &secret[from..]);
                let wrong = format!("{}{behind}", "x".repeat(secret.len() - from));
                let answer = |guess: &str| {
                    let echoed = format!("{text}IDENTIFIED BY '{guess}'");
                    let redacted = detector.redact(&echoed, Tier::Probable);
                    redacted.text.lines().take(text.lines().count()).collect::<Vec<_>>().join("\n")
                };
                assert_eq!(answer(&right), answer(&wrong), "{text}{right}");
            }
        }
    }
}

#[test]
fn too_many_values_redact_the_rest() {
    let detector = Detector::shipped().unwrap();
    let flood: Vec<String> = (0..30_000).map(|at| format!("DB_PASSWORD=q7Zk2mVx9T{at:05}")).collect();
    let text = format!("{}\nDB_PASSWORD={PASSWORD}\nconnecting with {PASSWORD}\n", flood.join("\n"));
    assert!(!detector.redact(&text, Tier::Probable).text.contains(PASSWORD));
}
