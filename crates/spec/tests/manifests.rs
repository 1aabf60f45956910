//! Invalid manifests are rejected at the exact position, with a reason.
//!
//! Each case in `manifests/` is a manifest whose first lines list its errors: `# expect: POINTER FRAGMENT`.
//! The set of pointers must match exactly.
#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

use std::{fs, path::Path};

use toolgate_spec::{Finding, Format};

#[test]
fn every_manifest_case_is_rejected_for_exactly_its_reasons() {
    let cases = cases();
    assert!(cases.len() >= 60, "only {} cases", cases.len());
    let failures: Vec<String> = cases.iter().filter_map(|(name, text)| judge(name, text)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn judge(name: &str, text: &str) -> Option<String> {
    let mut expected: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# expect: "))
        .map(|line| line.split_once(' ').unwrap_or((line, "")))
        .collect();
    let mut found = errors(text);
    expected.sort_unstable();
    found.sort_by_key(|finding| finding.at.to_string());
    let fits = expected.len() == found.len()
        && expected.iter().all(|(at, fragment)| {
            found.iter().any(|f| f.at.to_string() == *at && f.message.contains(fragment))
        })
        && found.iter().all(|f| {
            expected.iter().any(|(at, fragment)| f.at.to_string() == *at && f.message.contains(fragment))
        });
    let has_remedies = found.iter().all(|finding| !finding.remedy.is_empty());
    let shown = || found.iter().map(|f| format!("  {} {}", f.at, f.message)).collect::<Vec<_>>().join("\n");
    (!fits || !has_remedies || expected.is_empty())
        .then(|| format!("{name}\n expected {expected:?}\n found\n{}", shown()))
}

fn errors(text: &str) -> Vec<Finding> {
    let file = toolgate_spec::check_text(text, Format::Yaml);
    let tools = file.tools.into_iter().flat_map(|tool| tool.findings);
    file.findings.into_iter().chain(tools).filter(Finding::is_error).collect()
}

fn cases() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests");
    let mut cases: Vec<(String, String)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                fs::read_to_string(entry.path()).unwrap_or_default(),
            )
        })
        .collect();
    cases.sort();
    cases
}
