//! Finds and redacts secrets in texts that leave a call.

mod clean_texts;
mod redact;
mod secret_names;

use std::collections::HashMap;

use serde_json::{Value, json};
use toolgate_secrets::{Detector, SecretFinding, Tier};

pub use self::clean_texts::CleanTexts;
use self::redact::{RedactedValue, RedactionAudience, redact, redact_text};
use super::texts;
use crate::outcome::Warning;

/// A result without definite and probable secrets.
pub struct Sanitised {
    pub value: Value,
    /// Redacted secrets, and possible secrets that were left in.
    pub findings: Vec<SecretFinding>,
    /// A definite secret is left that could not be redacted without breaking the result.
    pub still_leaks: bool,
}

/// The value that may be released.
pub fn sanitise(detector: &Detector, value: Value) -> Sanitised {
    let RedactedValue { value, mut findings, less_sure, .. } =
        redact(detector, value, RedactionAudience::Caller);
    let left =
        if findings.is_empty() { None } else { surest(detector, &texts::of(&value), &value.to_string()) };
    let still_leaks = left.is_some_and(|finding| finding.tier == Tier::Definite);
    if less_sure > 0 {
        findings.extend(possible(detector, &value));
    }
    Sanitised { value, findings, still_leaks }
}

/// The arguments as an approver sees them.
pub struct ApproverView {
    pub value: Value,
    pub hidden_bytes: usize,
    /// As in `Sanitised`.
    pub still_leaks: bool,
}

/// Like `sanitise`, but of a private key only the base64 is redacted: a caller can put any text between the markers.
pub fn for_approver(detector: &Detector, value: Value) -> ApproverView {
    let still_leaks = sanitise(detector, value.clone()).still_leaks;
    let RedactedValue { value, hidden_bytes, .. } = redact(detector, value, RedactionAudience::Approver);
    ApproverView { value, hidden_bytes, still_leaks }
}

/// Secrets that were redacted earlier and whose markers are in the value. Must be called before the value itself is
/// redacted. All secrets of a kind have the same marker, so at most as many are returned as the value has markers.
pub fn marked(withheld: &[SecretFinding], value: &Value) -> Vec<SecretFinding> {
    if withheld.is_empty() {
        return Vec::new();
    }
    let json = value.to_string();
    let mut unclaimed: HashMap<String, usize> = HashMap::new();
    let mut is_shown = |finding: &SecretFinding| {
        let marks =
            unclaimed.entry(finding.mark()).or_insert_with_key(|mark| json.matches(mark.as_str()).count());
        let is_left = *marks > 0;
        *marks = marks.saturating_sub(1);
        is_left
    };
    withheld.iter().filter(|finding| is_shown(finding)).cloned().collect()
}

/// Possible secrets that are still in the value, one of each kind. Searches again, because some of the first matches
/// were inside a redacted secret.
fn possible(detector: &Detector, value: &Value) -> Vec<SecretFinding> {
    let mut found: Vec<SecretFinding> = Vec::new();
    let json = value.to_string();
    for text in texts::of(value).into_iter().chain([json.as_str()]) {
        for finding in detector.scan(text) {
            if finding.tier == Tier::Possible && found.iter().all(|known| known.rule != finding.rule) {
                found.push(finding);
            }
        }
    }
    found
}

/// Warnings for the reader of a result: probable secrets were redacted, possible ones were not. For definite secrets
/// the marker is enough.
pub fn warnings(findings: &[SecretFinding]) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = Vec::new();
    for finding in findings {
        let what = shown(finding);
        let (code, message) = match finding.tier {
            Tier::Definite => continue,
            Tier::Probable => ("secret.probable", format!("a probable secret ({what}) was redacted")),
            Tier::Possible => (
                "secret.possible",
                format!("this may contain a secret ({what}), which was not redacted; handle it with care"),
            ),
        };
        let warning = Warning { code, message };
        if warnings.len() < MOST_ROWS && !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings
}

/// The most certain definite or probable secret. Each text is searched by itself, without JSON's escapes, and then the
/// JSON of all, where the name of a field can identify a secret.
pub fn surest(detector: &Detector, texts: &[&str], json: &str) -> Option<SecretFinding> {
    let mut surest: Option<SecretFinding> = None;
    for text in texts.iter().copied().chain([json]) {
        let known = surest.as_ref().map(|finding| finding.tier);
        let found = detector.contains(text.as_bytes(), Tier::Probable);
        if let Some(finding) = found.filter(|finding| known < Some(finding.tier)) {
            let is_definite = finding.tier == Tier::Definite;
            surest = Some(finding);
            if is_definite {
                break;
            }
        }
    }
    surest
}

/// The values of definite and probable secrets, for an approval that covers exactly these. Each as plain text and as
/// JSON writes it.
pub fn values(detector: &Detector, texts: &[&str], json: &str) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for text in texts.iter().copied().chain([json]) {
        for finding in detector.redact(text, Tier::Probable).findings {
            let written = text.get(finding.span).unwrap_or_default();
            let read = serde_json::from_str::<String>(&format!("\"{written}\"")).unwrap_or_default();
            for value in [written, read.as_str()] {
                if !value.is_empty() && values.iter().all(|known| known != value) {
                    values.push(value.to_owned());
                }
            }
        }
    }
    values
}

/// A tool's message without secrets, for people and models.
pub fn without_secrets(detector: &Detector, text: &str) -> String {
    detector.redact(text, Tier::Probable).text.into_owned()
}

/// A value for the journal, without possible secrets and without texts in fields whose name marks a secret.
pub fn for_journal(detector: &Detector, value: Value) -> Value {
    redact(detector, value, RedactionAudience::Journal).value
}

/// A text for the journal, without possible secrets.
pub fn text_for_journal(detector: &Detector, text: String) -> String {
    redact_text(detector, text, RedactionAudience::Journal).text
}

/// `type of provider`, for people.
pub fn shown(finding: &SecretFinding) -> String {
    format!("{} of {}", finding.kind, finding.provider)
}

/// One row per secret, for the journal. Never the secret itself.
pub fn rows(findings: &[SecretFinding]) -> Vec<Value> {
    let row = |finding: &SecretFinding| {
        json!({
            "encoding": finding.encoding.name(), "provider": &*finding.provider, "rule": &*finding.rule,
            "tier": finding.tier.name(), "type": &*finding.kind,
        })
    };
    findings.iter().take(MOST_ROWS).map(row).collect()
}

const MOST_ROWS: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    /// Well formed, and not in use anywhere.
    fn token() -> String {
        format!("xox{}-481236795021-730918264513-{}", 'b', "q7Zk2mVx9TbLw4Rs8NyPd3Hc")
    }

    #[test]
    fn redaction_keeps_the_shape_of_a_result() {
        let detector = Detector::shipped().unwrap();
        let value = json!({ "line": format!("token {}\nnext", token()), "n": 3, "list": ["plain"] });
        let clean = sanitise(&detector, value);
        assert!(!clean.still_leaks);
        assert_eq!(clean.value["n"], 3);
        assert_eq!(clean.value["list"], json!(["plain"]));
        let line = clean.value["line"].as_str().unwrap();
        assert!(line.contains("[REDACTED:") && line.ends_with("\nnext"), "{line}");
        let rows = rows(&clean.findings);
        assert!(!rows.is_empty() && !rows[0].to_string().contains(&token()));
        assert!(warnings(&clean.findings).is_empty());
    }

    /// Includes values that only the name of their field identifies.
    #[test]
    fn values_are_those_of_the_findings() {
        let detector = Detector::shipped().unwrap();
        let opaque = "q7Zk2mVx9TbLw4Rs8NyPd3Hc";
        let arguments = json!({ "note": "store password = hunter22x please", "token": opaque, "n": 1 });
        let found = values(&detector, &texts::of(&arguments), &arguments.to_string());
        assert_eq!(found, ["hunter22x", opaque]);
    }

    /// Definite and probable secrets are redacted, so no warning about a possible one remains.
    #[test]
    fn possible_secret_is_reported_and_left_in() {
        let detector = Detector::shipped().unwrap();
        let digits = "8473f88bde538325c456a9920597ecfe5127ec1a09920557";
        let value =
            json!({ "a": format!("the signing secret used for cookies is {digits} today"), "b": "plain" });
        let clean = sanitise(&detector, value.clone());
        assert_eq!((&clean.value, clean.still_leaks), (&value, false));
        let told: Vec<&str> = warnings(&clean.findings).iter().map(|warning| warning.code).collect();
        assert_eq!(told, ["secret.possible"]);
        assert_eq!(rows(&clean.findings)[0]["tier"], "possible");
        let clean = sanitise(&detector, json!(format!("password = \"{digits}\"")));
        let told = warnings(&clean.findings);
        assert!(!told.is_empty() && told.iter().all(|warning| warning.code == "secret.probable"), "{told:?}");
        assert!(!clean.value.to_string().contains(digits));
    }

    /// A tool that reads a part of a file learns nothing about secrets in the rest, and neither does its caller.
    #[test]
    fn earlier_redactions_are_reported_if_their_marker_is_shown() {
        let detector = Detector::shipped().unwrap();
        let text = format!("one {}\npassword = \"correct-horse-7\"\n", token());
        let taken = detector.redact(&text, Tier::Probable);
        assert_eq!(taken.findings.len(), 2, "{:?}", taken.findings);
        let first_line = taken.text.lines().next().unwrap();
        let shown = marked(&taken.findings, &json!({ "lines": [first_line] }));
        assert_eq!(shown, taken.findings[..1]);
        assert_eq!(marked(&taken.findings, &json!("plain")), []);
        assert_eq!(marked(&[], &json!(first_line)), []);
    }

    /// One shown line of a log with five thousand tokens is one secret, not five thousand.
    #[test]
    fn one_marker_reports_one_secret() {
        let detector = Detector::shipped().unwrap();
        let text = format!("one {}\ntwo {}\n", token(), token().replace("q7Z", "Cd4"));
        let taken = detector.redact(&text, Tier::Probable);
        assert_eq!(taken.findings.len(), 2, "{:?}", taken.findings);
        let lines: Vec<&str> = taken.text.lines().collect();
        assert_eq!(marked(&taken.findings, &json!(lines[1])).len(), 1);
        assert_eq!(marked(&taken.findings, &json!(lines)).len(), 2);
        assert_eq!(marked(&taken.findings, &json!([lines, lines])).len(), 2, "shown twice, it is one");
    }

    fn check_journal(value: Value, kept: &Value) {
        assert_eq!(for_journal(&Detector::shipped().unwrap(), value), *kept);
    }

    #[test]
    fn journal_redacts_more() {
        check_journal(
            json!({ "db_password": "hunter2", "note": token(), "count": 2, "secret": true }),
            &json!({ "db_password": "[REDACTED]", "note": "[REDACTED]", "count": 2, "secret": true }),
        );
        let other = token().replace("q7Z", "Cd4");
        // Members keep their number even if their names are redacted.
        check_journal(json!({ token(): 1, other: 2 }), &json!({ "[REDACTED]": 1, "[REDACTED] (2)": 2 }));
    }

    /// The journal must not record what others may not see.
    #[test]
    fn journal_redacts_all_that_results_redact() {
        let opaque = "q7Zk2mVx9TbLw4Rs8NyPd3Hc";
        let digits = "8473f88bde538325c456a9920597ecfe5127ec1a09920557";
        for value in [
            json!({ "token": opaque }),
            json!({ "headers": { "X-Token": opaque, "Cookie": ["session=1", "plain"] } }),
            json!({ "note": "\"", "the secret of": digits }),
            json!({ "lines": redact::tests::key_lines(), "after": "x" }),
            json!({ "secret": "-----BEGIN PRIVATE KEY-----", "rest": redact::tests::key_lines()[1..] }),
        ] {
            let kept = for_journal(&Detector::shipped().unwrap(), value).to_string();
            for secret in [opaque, digits, "session=1", "rG3nmfZN"] {
                assert!(!kept.contains(secret), "{kept}");
            }
        }
    }

    #[test]
    fn journal_redaction_keeps_the_shape() {
        check_journal(
            json!({ "text": "plain", "list": [1, null, "two"], "token": "", "tokens": ["a", 1, { "b": "c" }], "empty": {} }),
            &json!({ "text": "plain", "list": [1, null, "two"], "token": "", "tokens": ["[REDACTED]", 1, { "b": "c" }], "empty": {} }),
        );
        let text = format!("first {}\nlast", redact::tests::key_lines().join("\n"));
        check_journal(json!({ "text": text }), &json!({ "text": "first [REDACTED]\nlast" }));
        check_journal(json!(text), &json!("first [REDACTED]\nlast"));
        check_journal(json!([]), &json!([]));
        check_journal(Value::Null, &Value::Null);
    }
}
