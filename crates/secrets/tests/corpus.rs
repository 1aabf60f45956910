//! Texts with marked secrets: all of them are covered, and nothing else is.
//!
//! `⟦` and `⟧` surround a secret; `<|>` is removed, and keeps other scanners from reporting the file as a leak.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the corpus is files, and a test fails loudly"
)]

use std::{fs, ops::Range, path::Path};

use toolgate_secrets::{Detector, Encoding, SecretFinding, Tier};

#[test]
fn definite() {
    check_folder("definite", Tier::Definite);
}

#[test]
fn probable() {
    check_folder("probable", Tier::Probable);
}

#[test]
fn possible() {
    check_folder("possible", Tier::Possible);
}

/// Attempts of an attacker to get a secret through.
#[test]
fn escapes() {
    check_folder("escapes", Tier::Definite);
}

#[test]
fn clean() {
    let detector = Detector::shipped().unwrap();
    let mut wrong = Vec::new();
    for (name, text) in folder("clean") {
        let findings = detector.scan(&text);
        wrong.extend(findings.iter().map(|found| told(&name, &text, found)));
    }
    assert!(wrong.is_empty(), "found where there is nothing:\n{}", wrong.join("\n"));
}

/// The finding names the disguise, so people understand why text was redacted.
#[test]
fn finding_names_the_disguise() {
    let detector = Detector::shipped().unwrap();
    for (file, encoding) in [
        ("base64.txt", Encoding::Base64),
        ("hex.txt", Encoding::Hex),
        ("url_encoded.txt", Encoding::Url),
        ("json_unicode.txt", Encoding::Escape),
        ("html_entities.html", Encoding::Entity),
        ("math_monospace.txt", Encoding::LookAlike),
        ("spaced.txt", Encoding::Spaced),
        ("split_lines.txt", Encoding::Split),
    ] {
        let (_, text) = folder("escapes").into_iter().find(|(name, _)| name == file).unwrap();
        let (text, _) = unmarked(&text);
        let surest = detector.contains(text.as_bytes(), Tier::Definite).unwrap();
        assert_eq!(surest.encoding, encoding, "{file}");
    }
}

#[track_caller]
fn check_folder(name: &str, tier: Tier) {
    let detector = Detector::shipped().unwrap();
    let mut wrong = Vec::new();
    for (file, marked) in folder(name) {
        let (text, secrets) = unmarked(&marked);
        assert!(!secrets.is_empty(), "{file} marks nothing");
        let findings = detector.scan(&text);
        for secret in &secrets {
            let covered = findings.iter().any(|found| {
                found.tier >= tier && found.span.start <= secret.start && secret.end <= found.span.end
            });
            if !covered {
                wrong.push(format!("{file}: not covered: {:?}", text.get(secret.clone()).unwrap()));
            }
        }
        for found in &findings {
            let overlaps =
                |secret: &Range<usize>| found.span.start < secret.end && secret.start < found.span.end;
            if found.tier >= tier && !secrets.iter().any(overlaps) {
                wrong.push(told(&file, &text, found));
            }
            if name != "escapes" && found.tier > tier {
                wrong.push(format!("{}, too sure", told(&file, &text, found)));
            }
        }
        let redacted = detector.redact(&text, tier);
        assert_eq!(redacted.text.lines().count(), text.lines().count(), "{file} lost lines");
        assert_eq!(detector.redact(&redacted.text, tier).findings, [], "{file} is redacted twice");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn told(file: &str, text: &str, found: &SecretFinding) -> String {
    format!("{file}: {found} by {}: {:?}", found.rule, text.get(found.span.clone()).unwrap())
}

fn unmarked(marked: &str) -> (String, Vec<Range<usize>>) {
    let marked = marked.replace("<|>", "");
    let (mut text, mut secrets, mut start) = (String::new(), Vec::new(), 0);
    for character in marked.chars() {
        match character {
            '⟦' => start = text.len(),
            '⟧' => secrets.push(start..text.len()),
            other => text.push(other),
        }
    }
    (text, secrets)
}

fn folder(name: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name);
    let mut files: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}
