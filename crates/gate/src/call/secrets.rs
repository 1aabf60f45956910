//! Which secrets does a text hold that is about to leave, and how does it read without them?

mod redact;

use serde_json::{Map, Value, json};
use toolgate_secrets::{Detector, Finding, Tier};

use self::redact::redact;
use super::texts;

/// A result without what is at least probably a secret.
pub struct Sanitised {
    pub value: Value,
    /// One row a secret, never the secret itself; for the journal.
    pub found: Vec<Value>,
    /// Something definite is left that could not be taken out without breaking the result.
    pub still_leaks: bool,
}

/// The value as it may leave.
pub fn sanitise(detector: &Detector, value: Value) -> Sanitised {
    let (value, findings) = redact(detector, value);
    let left =
        if findings.is_empty() { None } else { surest(detector, &texts::of(&value), &value.to_string()) };
    let still_leaks = left.is_some_and(|finding| finding.tier == Tier::Definite);
    Sanitised { value, found: rows(&findings), still_leaks }
}

/// What is most surely a secret, and at least probably one. Each text is looked at by itself, where JSON's escapes do not change
/// how it reads, and then the JSON of the whole, where a secret is told by what stands beside it.
pub fn surest(detector: &Detector, texts: &[&str], json: &str) -> Option<Finding> {
    let mut surest: Option<Finding> = None;
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

/// A message of a tool, for people and models.
pub fn without_secrets(detector: &Detector, text: &str) -> String {
    detector.redact(text, Tier::Probable).text.into_owned()
}

/// A value for the journal: what may possibly be a secret is blotted out there, and whatever stands under a telling name.
pub fn for_journal(detector: &Detector, value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text_for_journal(detector, text)),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| for_journal(detector, item)).collect())
        }
        Value::Object(members) => {
            let mut kept = Map::with_capacity(members.len());
            for (key, value) in members {
                let value = if is_telling(&key) && holds_text(&value) {
                    Value::String(BLOT.to_owned())
                } else {
                    for_journal(detector, value)
                };
                kept.insert(text_for_journal(detector, key), value);
            }
            Value::Object(kept)
        }
        other => other,
    }
}

/// A text for the journal.
pub fn text_for_journal(detector: &Detector, text: String) -> String {
    let findings = detector.scan(&text);
    if findings.is_empty() { text } else { blotted(&text, &findings) }
}

/// `type of provider`, for people.
pub fn shown(finding: &Finding) -> String {
    format!("{} of {}", finding.kind, finding.provider)
}

fn rows(findings: &[Finding]) -> Vec<Value> {
    let row = |finding: &Finding| {
        json!({
            "rule": &*finding.rule, "type": &*finding.kind, "provider": &*finding.provider,
            "tier": finding.tier.name(), "encoding": finding.encoding.name(),
        })
    };
    findings.iter().take(MOST_ROWS).map(row).collect()
}

fn blotted(text: &str, findings: &[Finding]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for finding in findings {
        out.push_str(text.get(from..finding.span.start).unwrap_or_default());
        out.push_str(BLOT);
        from = finding.span.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

fn holds_text(value: &Value) -> bool {
    matches!(value, Value::String(text) if !text.is_empty())
}

/// Names under which nobody keeps anything but a secret, in any spelling.
fn is_telling(key: &str) -> bool {
    let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    TELLING.iter().any(|name| plain.ends_with(name))
}

const TELLING: &[&str] = &[
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "authorization",
    "authtoken",
    "clientsecret",
    "cookie",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "refreshtoken",
    "secret",
    "secretkey",
    "sessionid",
    "setcookie",
    "signingkey",
];

const BLOT: &str = "[REDACTED]";
const MOST_ROWS: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    /// Well formed, and nobody's.
    fn token() -> String {
        format!("xox{}-{}-{}-{}", 'b', "1".repeat(12), "2".repeat(12), "Ab3".repeat(8))
    }

    #[test]
    fn a_result_keeps_its_shape() {
        let detector = Detector::shipped().unwrap();
        let value = json!({ "line": format!("token {}\nnext", token()), "n": 3, "list": ["plain"] });
        let clean = sanitise(&detector, value);
        assert!(!clean.still_leaks);
        assert_eq!(clean.value["n"], 3);
        assert_eq!(clean.value["list"], json!(["plain"]));
        let line = clean.value["line"].as_str().unwrap();
        assert!(line.contains("[REDACTED:") && line.ends_with("\nnext"), "{line}");
        assert!(!clean.found.is_empty() && !clean.found[0].to_string().contains(&token()));
    }

    #[test]
    fn the_journal_is_told_less() {
        let detector = Detector::shipped().unwrap();
        let kept = for_journal(
            &detector,
            json!({ "db_password": "hunter2", "note": token(), "count": 2, "secret": true }),
        );
        assert_eq!(kept, json!({ "db_password": BLOT, "note": BLOT, "count": 2, "secret": true }));
    }
}
