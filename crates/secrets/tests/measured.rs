//! Recall and false alarms on two sets of lines; the rules were tuned on one of them only.
//!
//! Each line is a case. `⟦` and `⟧` surround its secrets, `⏎` is a line end, and `<|>` is removed; it keeps other
//! scanners from reporting the file as a leak. All values are made up.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the cases are files, and a test fails loudly"
)]

use std::{fs, path::Path};

use toolgate_secrets::{Detector, Tier};

#[test]
fn recall_and_false_alarms_on_the_tuning_set() {
    check("tuning", 98, 0);
}

#[test]
fn recall_and_false_alarms_on_the_held_out_set() {
    check("held_out", 98, 0);
}

/// `recall` is the minimum share of redacted secrets, `alarms` the maximum share of clean lines with a finding; in
/// percent.
#[track_caller]
fn check(set: &str, recall: usize, alarms: usize) {
    let detector = Detector::shipped().unwrap();
    let (mut missed, mut false_alarms) = (Vec::new(), Vec::new());
    let secrets = lines(&format!("{set}_secrets.txt"));
    for marked in &secrets {
        let text = marked.replace(['⟦', '⟧'], "");
        let redacted = detector.redact(&text, Tier::Probable).text;
        let values = marked.split('⟦').skip(1).filter_map(|part| part.split('⟧').next());
        if values.into_iter().any(|value| redacted.contains(value)) {
            missed.push(text);
        }
    }
    let clean = lines(&format!("{set}_clean.txt"));
    for text in &clean {
        let findings = detector.redact(text, Tier::Probable).findings;
        false_alarms.extend(findings.first().map(|found| format!("{found} by {}: {text}", found.rule)));
    }
    let found = (secrets.len() - missed.len()) * 100 / secrets.len();
    let alarmed = false_alarms.len() * 100 / clean.len();
    assert!(found >= recall, "{set}: {found} % of {} found; missed:\n{}", secrets.len(), missed.join("\n"));
    assert!(alarmed <= alarms, "{set}: {alarmed} % of {}:\n{}", clean.len(), false_alarms.join("\n"));
}

fn lines(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/measured").join(file);
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.replace("<|>", "").replace('⏎', "\n")).collect()
}
