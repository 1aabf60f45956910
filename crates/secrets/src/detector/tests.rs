//! Loading rules: errors name the rule and the remedy.

use super::*;
use crate::searcher::SecretCandidate;

#[test]
fn shipped_rules_pass_their_examples() {
    let detector = Detector::shipped().unwrap();
    let providers: HashSet<_> = detector.rules().map(|rule| rule.provider).collect();
    assert!(providers.len() >= 150, "{} providers", providers.len());
    assert!(Arc::ptr_eq(&detector, &Detector::shipped().unwrap()), "they are loaded once");
}

/// A file with one rule that has these fields besides the required ones.
fn file(fields: &str) -> String {
    format!(
        r#"{{"rules": [{{"id": "acme", "provider": "acme", "type": "token", "tier": "definite", {fields},
        "examples": {{"hit": ["acme_0123456789"], "miss": ["acme_0"]}}}}]}}"#
    )
}

fn load(text: &str) -> Result<Detector, RuleError> {
    Detector::from_files(&[RuleFile { name: "acme.json", text }], &[])
}

#[track_caller]
fn check_error(text: &str, expect: &str) {
    let error = load(text).unwrap_err().to_string();
    assert!(error.starts_with("acme.json: ") && error.contains(expect), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn custom_rule_is_loaded() {
    let text = file(r#""pattern": "acme_[0-9]{10}""#);
    let own = RuleFile { name: "acme.json", text: &text };
    let detector = Detector::with(&[own], &["github-token"]).unwrap();
    assert_eq!(detector.redact("x acme_0123456789", Tier::Definite).text, "x [REDACTED:token:acme]");
    assert!(detector.rules().all(|rule| &*rule.id != "github-token"));
}

#[test]
fn invalid_rules_are_named() {
    check_error("{", "not a file of rules");
    check_error(&file(r#""pattern": "acme_[0-9]{8,}""#), "rule `acme`: `pattern` may match more than");
    check_error(&file(r#""pattern": "acme_(""#), "rule `acme`: `pattern` cannot be read");
    check_error(&file(r#""pattern": "acme_1""#), "can match fewer than");
    check_error(&file(r#""pattern": "[a-z]{4}_[0-9]{10}""#), "does not begin with three fixed characters");
    check_error(&file(r#""pattern": "acme_[0-9]{10}", "minEntropy": 3"#), "add a `context`");
    check_error(&file(r#""pattern": "acme_[0-9]{10}", "unverified": "probable""#), "needs a `check`");
    check_error(&file(r#""pattern": "acme_[0-9]{10}", "check": "crc"#), "not a file of rules");
    check_error(&file(r#""pattern": "acme_[0-9]{10}", "keywords": ["ab"]"#), "at least 3 characters");
    check_error(
        &file(r#""pattern": "acme_[0-9]{10}", "context": {"words": [], "within": 5}"#),
        "needs words",
    );
    check_error(&file(r#""pattern": "acme_[0-9]{10}", "surprise": 1"#), "surprise");
}

/// The work per hit must be small, however many hits there are.
#[test]
fn rules_that_would_be_slow_are_refused() {
    for pattern in ["[0-9]{8,10}:acme_[0-9]{10}", "[a-z]{8}:acme_[0-9]{10}"] {
        let fields = format!(r#""pattern": "{pattern}", "keywords": [":acme_"], "reach": 300"#);
        check_error(&file(&fields), "let `pattern` begin with three fixed characters, in one of 16 ways");
    }
    check_error(
        &file(r#""pattern": "acme_[0-9]{10}", "keywords": ["e_0"], "reach": 3, "check": "loose""#),
        "add a `context`",
    );
}

#[test]
fn examples_are_checked_when_loaded() {
    check_error(&file(r#""pattern": "acme_[0-9]{11}""#), "rule `acme`: does not match its example `hit` 1");
    let miss = file(r#""pattern": "acme_[0-9]{10}""#).replace("\"acme_0\"", "[\"acme_01\", \"23456789\"]");
    check_error(&miss, "rule `acme`: matches its example `miss` 1");
    let none = file(r#""pattern": "acme_[0-9]{10}""#).replace("\"acme_0\"", "");
    check_error(&none, "add at least one `hit`");
}

#[test]
fn ids_are_unique_and_known() {
    let text = file(r#""pattern": "acme_[0-9]{10}""#);
    let own = RuleFile { name: "acme.json", text: &text };
    let twice = Detector::from_files(&[own, own], &[]).unwrap_err();
    assert_eq!(twice.to_string(), "acme.json: rule `acme`: another rule has this id; choose a unique id");
    let unknown = Detector::with(&[], &["no-such-rule"]).unwrap_err();
    assert_eq!(unknown.to_string(), "disabled: unknown disabled rule `no-such-rule`; see the list of rules");
}

#[test]
fn names_that_would_break_a_marker_are_refused() {
    let text =
        file(r#""pattern": "acme_[0-9]{10}""#).replace("\"provider\": \"acme\"", "\"provider\": \"ac]me\"");
    check_error(&text, "`provider` is `ac]me`; use 1 to 40 of a-z, 0-9 and `-`");
}

/// Callers learn that there are less certain findings, even in the last of many windows.
#[test]
fn less_certain_findings_are_counted_and_stay() {
    let detector = Detector::shipped().unwrap();
    let line =
        "the signing secret used for cookies is 8473f88bde538325c456a9920597ecfe5127ec1a09920557 today\n";
    for text in [line.to_owned(), format!("{}{line}", "plain words\n".repeat(60_000))] {
        let redacted = detector.redact(&text, Tier::Probable);
        assert_eq!(&*redacted.text, text);
        assert!(redacted.less_sure > 0);
        assert_eq!(detector.redact(&text, Tier::Possible).less_sure, 0);
    }
    assert_eq!(detector.redact("plain words", Tier::Definite).less_sure, 0);
}

/// A disguise next to a secret is decoded, too: otherwise an encoded quote in a URL hides the word boundary, and with
/// it every secret that needs one.
#[test]
fn disguise_next_to_a_definite_secret_does_not_hide_it() {
    let detector = Detector::shipped().unwrap();
    let mut wrong = Vec::new();
    for loaded in SHIPPED.iter().flat_map(|file| read(*file).unwrap()) {
        let rule = &loaded.rule;
        let hits = loaded.hits.iter().filter(|_| rule.tier == Tier::Definite);
        for (hit, (before, behind)) in hits.flat_map(|hit| BESIDE.iter().map(move |beside| (hit, beside))) {
            let text = format!("a: {before}{hit}{behind}");
            let found = detector.searcher.search(text.as_bytes(), &mut Scratch::default());
            let is_it = |one: &SecretCandidate| {
                detector.searcher.rules[one.rule].id == rule.id && one.tier == rule.tier
            };
            if !found.iter().any(is_it) {
                wrong.push(format!("{}: {text:?}", rule.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const BESIDE: &[(&str, &str)] = &[
    ("%22", "%22"),
    ("key%3D", "%26"),
    ("Hello%20", "%20"),
    ("\\n", "\\n"),
    ("\\t", "\\t"),
    ("\u{1b}[32m", "\u{1b}[0m"),
    ("\\u0022", "\\u0022"),
    ("&#34;", "&#34;"),
];

/// A marker creates word boundaries: adjacent text becomes a secret, which creates the next one, and so on.
#[test]
fn adjacent_secrets_are_redacted_once() {
    let detector = Detector::shipped().unwrap();
    for loaded in SHIPPED.iter().flat_map(|file| read(*file).unwrap()) {
        for hit in &loaded.hits {
            for text in [
                hit.repeat(60),
                format!("{hit}{}", "0123456789abcdef".repeat(60)),
                format!("{hit} ").repeat(60),
            ] {
                let once = detector.redact(&text, Tier::Possible).text.into_owned();
                let twice = detector.redact(&once, Tier::Possible);
                assert_eq!(twice.text, once, "{}: {text}", loaded.rule.id);
            }
        }
    }
}
