//! How many poisoned texts does the lint find, and how many honest ones does it suspect?
//!
//! `poison/poisoned.txt` and `poison/benign.txt` hold one text a line; `\n`, `\t` and `\u{…}` are escapes, so that
//! reviewers see what stands there; lines that begin with `# ` are headings.

use toolgate_spec::{Format, check_text};

#[test]
fn the_corpus_is_told_apart() {
    let poisoned = texts(include_str!("poison/poisoned.txt"));
    let benign = texts(include_str!("poison/benign.txt"));
    assert!(poisoned.len() >= 120 && benign.len() >= 150, "{} and {}", poisoned.len(), benign.len());

    let missed: Vec<&String> = poisoned.iter().filter(|text| poison_codes(text).is_empty()).collect();
    let suspected: Vec<(&String, Vec<String>)> =
        benign.iter().map(|text| (text, poison_codes(text))).filter(|(_, codes)| !codes.is_empty()).collect();
    let recall = 1.0 - share(missed.len(), poisoned.len());
    let false_positives = share(suspected.len(), benign.len());
    println!(
        "recall {recall:.3} of {}, false positives {false_positives:.3} of {}",
        poisoned.len(),
        benign.len()
    );
    println!("missed: {missed:#?}\nsuspected: {suspected:#?}");
    assert!(recall >= 0.95, "recall {recall:.3}; missed: {missed:#?}");
    assert!(false_positives <= 0.03, "false positives {false_positives:.3}; suspected: {suspected:#?}");
}

/// The poisoning findings of a tool with this description.
fn poison_codes(description: &str) -> Vec<String> {
    let document = serde_json::json!({
        "name": "tool", "description": description, "code": "return 1", "codeType": "Javascript",
    });
    check_text(&document.to_string(), Format::Json)
        .tools
        .iter()
        .flat_map(|tool| &tool.findings)
        .filter(|finding| finding.code.name().starts_with("LINT_POISON"))
        .map(|finding| format!("{}: {}", finding.code.name(), finding.message))
        .collect()
}

fn texts(file: &str) -> Vec<String> {
    file.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("# ")).map(unescape).collect()
}

fn unescape(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, from)) = rest.split_once('\\') {
        text.push_str(before);
        rest = if let Some(after) = from.strip_prefix('n') {
            text.push('\n');
            after
        } else if let Some(after) = from.strip_prefix('t') {
            text.push('\t');
            after
        } else if let Some((digits, after)) = from.strip_prefix("u{").and_then(|hex| hex.split_once('}')) {
            let written = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
            assert!(written.is_some(), "`{digits}` is no character");
            text.extend(written);
            after
        } else {
            text.push('\\');
            from
        };
    }
    text.push_str(rest);
    text
}

#[expect(clippy::cast_precision_loss, reason = "a few hundred lines")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}
