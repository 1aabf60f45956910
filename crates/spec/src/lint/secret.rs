//! Does any text of the document look like a credential?
//!
//! One pass of an automaton finds the few words that credentials begin with; a rule's expression runs only from
//! there, anchored, so the cost is linear in the text. No word near a value makes it innocent: such a word is
//! the first thing that somebody who hides a secret would write.

mod keyed;
mod rules;

use std::{
    ops::ControlFlow,
    sync::{LazyLock, OnceLock},
};

use regex::Regex;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    needles::Needles,
    report::Report,
    show::listed,
    trail::{Trail, strings_and_keys},
};
use crate::Code;
use rules::{Before, RULES, Rule, Test};

pub(super) fn check(document: &Map<String, Value>, report: &mut Report<'_>) {
    let root = Trail::Root;
    let is_uuid = |value: &Value| value.as_str().is_some_and(|id| Uuid::try_parse(id).is_ok());
    for (key, value) in document.iter().filter(|(key, value)| *key != "toolId" || !is_uuid(value)) {
        let language = if key == "code" { Language::Code } else { Language::Prose };
        let mut visit = |text: &str, trail: &Trail<'_>| {
            let Found { mut hits, has_known_format } = find(text, language);
            let is_key = trail.is_key(text);
            if !is_key {
                hits.extend(trail.name().and_then(|name| keyed::find(name, text, key)));
            }
            if hits.is_empty() {
                return;
            }
            // The pointer to a key would repeat the secret.
            let at = if is_key { trail.parent_pointer() } else { trail.pointer() };
            let message = format!("this looks like {}", listed(&hits));
            if has_known_format || is_shown_to_models(key, trail) {
                report.add_blocking(Code::LintSecretText, at, message, REMEDY);
            } else {
                report.add(Code::LintSecretText, at, message, REMEDY);
            }
        };
        let trail = root.key(key);
        visit(key, &trail);
        strings_and_keys(value, &trail, &mut visit);
    }
}

/// Is the text part of what clients list? There every suspicion keeps the document from being published.
fn is_shown_to_models(key: &str, trail: &Trail<'_>) -> bool {
    match key {
        "params" => matches!(trail.name(), Some("name" | "description")),
        _ => super::poison::SHOWN_TEXTS.contains(&key) || super::poison::SHOWN_TREES.contains(&key),
    }
}

/// The credentials in one text.
#[derive(Default)]
struct Found {
    hits: Vec<String>,
    /// One of them is recognised by its format alone, without any context.
    has_known_format: bool,
}

/// Code quotes its texts; prose and command lines do not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Language {
    Code,
    Prose,
}

fn find(text: &str, language: Language) -> Found {
    let mut found = Found::default();
    if text.len() < SHORTEST {
        return found;
    }
    let _ = DETECTOR.needles.each(text, |needle, start| {
        // Suspicions beyond the limit are not reported. A known format still is, because it blocks publishing.
        let is_full = found.hits.len() >= MOST_HITS;
        let rules = DETECTOR.rules_of.get(needle).map_or(&[][..], Vec::as_slice);
        let hit = rules.iter().find_map(|number| {
            let rule = RULES.get(*number).filter(|rule| !is_full || has_known_format(rule))?;
            Some((rule, apply(rule, *number, text, start, language)?))
        });
        if let Some((rule, name)) = hit {
            // In front, because a message names only the first few.
            let at = if is_full { 0 } else { found.hits.len() };
            found.hits.insert(at, name);
            found.has_known_format |= has_known_format(rule);
        }
        if found.has_known_format && found.hits.len() >= MOST_HITS {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    found
}

/// Whether the rule recognises a credential by its format alone.
const fn has_known_format(rule: &Rule) -> bool {
    matches!(rule.test, Test::Shape | Test::Mixed)
}

fn apply(rule: &Rule, number: usize, text: &str, start: usize, language: Language) -> Option<String> {
    let (before, from) = text.split_at_checked(start)?;
    if (rule.test == Test::Unquoted && language == Language::Code) || !rule.before.holds(before) {
        return None;
    }
    let from = from.get(..from.floor_char_boundary(LONGEST)).unwrap_or(from);
    if !is_worth_a_try(rule.test, from) {
        return None;
    }
    let found = pattern(rule, number)?.captures(from)?;
    let value = found.name("value").map_or("", |value| value.as_str());
    let word = found.name("word").map_or("", |word| word.as_str());
    let holds = match rule.test {
        Test::Shape => true,
        Test::Mixed => keyed::is_mixed(value),
        Test::Assigned | Test::Unquoted => keyed::is_secret_value(word, value),
        Test::Random => keyed::is_random(value),
        Test::Password => !keyed::without_placeholders(value).is_empty(),
        Test::JsonWebToken => super::poison::decode::base64(value)
            .is_some_and(|header| header.windows(5).any(|piece| piece == b"\"alg\"")),
    };
    // The sample keys in AWS's own documentation. A word near a key excuses nothing; these end with it.
    let is_sample = ["EXAMPLE", "EXAMPLEKEY"].iter().any(|end| {
        let whole = found.get(0).map_or("", |all| all.as_str()).trim_end_matches(['"', '\'', '`']);
        whole.ends_with(end) || value.ends_with(end)
    });
    let holds = holds && !is_sample;
    // Only a public prefix is shown; of a password even four characters would be too many.
    let prefix: String = found.get(0).map_or("", |all| all.as_str()).chars().take(4).collect();
    holds.then(|| match rule.before {
        Before::Edge if matches!(rule.test, Test::Shape) => format!("{} (`{prefix}…`)", rule.name),
        _ => rule.name.to_owned(),
    })
}

/// A glance at the bytes that follow; most words for secrets are followed by nothing of the kind.
fn is_worth_a_try(test: Test, from: &str) -> bool {
    let bytes = from.as_bytes();
    match test {
        Test::Shape | Test::Mixed | Test::JsonWebToken => true,
        Test::Password => {
            let ends = |byte: &u8| {
                matches!(byte, b'/' | b'@' | b'"' | b'\'' | b'`' | b'?' | b'#') || byte.is_ascii_whitespace()
            };
            bytes.iter().skip("://".len()).take(PASSWORD_WINDOW).find(|byte| ends(byte)) == Some(&b'@')
        }
        Test::Assigned | Test::Unquoted => {
            let is_word = |byte: &&u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-');
            let is_between =
                |byte: &&u8| matches!(byte, b'"' | b'\'' | b'`' | b'\\') || byte.is_ascii_whitespace();
            let word = bytes.iter().take(WORD_WINDOW).take_while(is_word).count();
            let sign = word + bytes.iter().skip(word).take(WORD_WINDOW).take_while(is_between).count();
            matches!(bytes.get(sign), Some(b'=' | b':'))
        }
        Test::Random => {
            // A run of 32 covers one of every 32 bytes; from there it is counted both ways.
            let window = bytes.get(..RANDOM_WINDOW).unwrap_or(bytes);
            let is_part = |byte: &&u8| keyed::is_token_byte(**byte);
            (RANDOM_RUN - 1..window.len()).step_by(RANDOM_RUN).any(|at| {
                let (before, after) = window.split_at_checked(at).unwrap_or_default();
                before.iter().rev().take_while(is_part).count() + after.iter().take_while(is_part).count()
                    >= RANDOM_RUN
            })
        }
    }
}

struct Detector {
    needles: Needles,
    /// For each needle, the rules that begin with it.
    rules_of: Vec<Vec<usize>>,
}

static DETECTOR: LazyLock<Detector> = LazyLock::new(|| {
    let mut needles: Vec<&'static str> = RULES.iter().flat_map(|rule| rule.needles).copied().collect();
    needles.sort_unstable();
    needles.dedup();
    let rules_of = |needle: &&str| {
        let rules = RULES.iter().enumerate().filter(|(_, rule)| rule.needles.contains(needle));
        rules.map(|(number, _)| number).collect()
    };
    let rules_of = needles.iter().map(rules_of).collect();
    Detector { needles: Needles::new(needles), rules_of }
});

/// A rule's expression, compiled when a needle of it is first met: most documents meet none.
fn pattern(rule: &Rule, number: usize) -> Option<&'static Regex> {
    static PATTERNS: [OnceLock<Option<Regex>>; RULES.len()] = [const { OnceLock::new() }; RULES.len()];
    let compiled = PATTERNS.get(number)?.get_or_init(|| Regex::new(&format!(r"\A(?:{})", rule.pattern)).ok());
    compiled.as_ref()
}

const REMEDY: &str =
    "revoke it, keep the new one in the environment, and refer to it as `${NAME}` from a static variable";

/// How far behind a rule's beginning its telling characters can stand.
const PASSWORD_WINDOW: usize = 220;
const WORD_WINDOW: usize = 32;
const RANDOM_WINDOW: usize = 110;
const RANDOM_RUN: usize = 32;
/// No rule matches less.
const SHORTEST: usize = 12;
/// No rule looks further than this from where it begins.
const LONGEST: usize = 4096;
/// A text that has this many secrets needs no more findings, except for the first of a known format.
const MOST_HITS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(text: &str, language: Language) -> Vec<String> {
        find(text, language).hits
    }

    #[track_caller]
    fn check(document: &Value, expect: &[(&str, &str)]) {
        let mut findings = Vec::new();
        let mut report = Report::new(&mut findings);
        super::check(document.as_object().unwrap(), &mut report);
        let found: Vec<_> =
            findings.iter().map(|finding| (finding.at.as_str(), finding.message.as_str())).collect();
        assert_eq!(found, expect);
    }

    /// Examples carry a `~` so that other people's scanners leave our source alone.
    fn unbroken(example: &str) -> String {
        example.replace('~', "")
    }

    #[test]
    fn every_rule_compiles_and_keeps_to_its_examples() {
        for (number, rule) in RULES.iter().enumerate() {
            assert!(pattern(rule, number).is_some(), "{}", rule.name);
            for hit in rule.hits {
                let found = hits(&unbroken(hit), Language::Prose);
                assert!(
                    found.iter().any(|name| name.starts_with(rule.name)),
                    "{}: {hit}: {found:?}",
                    rule.name
                );
            }
            for miss in rule.misses {
                assert_eq!(hits(&unbroken(miss), Language::Prose), [""; 0], "{}: {miss}", rule.name);
            }
        }
    }

    #[test]
    fn what_only_looks_random_is_left_alone() {
        for innocent in [
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "commit 9b9a6e92f1c3d4e5a6b7c8d9e0f1a2b3c4d5e6f7",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "550e8400-e29b-41d4-a716-446655440000",
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
            "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7",
            "Authorization: Bearer ${GITHUB_TOKEN}",
            "password: string, at least 12 characters",
            "Pass the api_key = {key} of the account",
            "token: the token that the login tool returned",
            "https://api.example.com/v1/users?token={token}",
            "sk-learn is a library; task-oriented and risk-averse people use it",
            "secret: optional",
            "https://example.com:8080/@user/post",
        ] {
            assert_eq!(hits(innocent, Language::Prose), [""; 0], "{innocent}");
        }
        for innocent in [
            "const token = await login(user1, pass2)",
            "const password=input.password2||other1",
            "headers: { 'X-Token': token, Authorization: `Bearer ${apiKey}` }",
            "if (!secret) return { error: 'secret', token: \"not_configured\" }",
            "return { token: 'https://oauth2.googleapis.com/token' }",
        ] {
            assert_eq!(hits(innocent, Language::Code), [""; 0], "{innocent}");
        }
    }

    #[test]
    fn documented_sample_keys_are_accepted() {
        for sample in
            ["AKIA~IOSFODNN7EXAMPLE", "aws_secret_access_key = 'wJal~rXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'"]
        {
            assert_eq!(hits(&unbroken(sample), Language::Prose), [""; 0], "{sample}");
        }
    }

    #[test]
    fn no_neighbouring_word_is_an_excuse() {
        let key = unbroken("AKIA~QYLPMN5HXAMPLE7Z");
        for text in [
            format!("example {key}"),
            format!("xxx {key} xxx"),
            format!("data:image/png;base64, {key}"),
            format!("not a secret: '{key}'"),
        ] {
            let found = hits(&text, Language::Prose);
            assert!(found.iter().any(|name| name == "an AWS access key (`AKIA…`)"), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_live_secret_keeps_a_document_from_being_published() {
        let github = unbroken("gh~p_1234567890abcdefghijABCDEFGHIJ123456");
        let jwt = unbroken(
            "eyJ~hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        );
        let is_blocked = |document: &Value| {
            let mut findings = Vec::new();
            let mut report = Report::new(&mut findings);
            super::check(document.as_object().unwrap(), &mut report);
            findings.iter().any(|finding| finding.blocks_publishing)
        };
        for document in [
            serde_json::json!({ "description": format!("uses {github}") }),
            serde_json::json!({ "description": format!("try {jwt}") }),
            serde_json::json!({ "params": [{ "name": "q", "description": "password: 'hunter2horse9'" }] }),
            serde_json::json!({ "input": { "properties": { "q": { "default": github } } } }),
            serde_json::json!({ "code": format!("const key = '{github}'") }),
            serde_json::json!({ "staticVariables": [{ "key": github }] }),
            serde_json::json!({ "params": [{ "name": "q", "testValue": github }] }),
            serde_json::json!({ "toolId": github }),
            serde_json::json!({ github.as_str(): 1 }),
            serde_json::json!({ "staticVariables": [{ github.as_str(): "a" }] }),
            serde_json::json!({ "input": { "properties": { github.as_str(): {} } } }),
        ] {
            assert!(is_blocked(&document), "{document}");
        }
        // A sample token to decode, and a local password in code, are warnings.
        for document in [
            serde_json::json!({ "params": [{ "name": "q", "testValue": jwt }] }),
            serde_json::json!({ "code": "const password = 'hunter2horse9'" }),
            serde_json::json!({ "toolId": "0198c0de-0000-7000-8000-00000000abcd" }),
            serde_json::json!({ "staticVariables": [{ "X-Api-Key-v2": "${KEY}" }] }),
        ] {
            assert!(!is_blocked(&document), "{document}");
        }
    }

    #[test]
    fn secret_in_a_key_is_not_repeated_by_the_pointer() {
        let github = unbroken("gh~p_1234567890abcdefghijABCDEFGHIJ123456");
        check(
            &serde_json::json!({ "staticVariables": [{ github.as_str(): "a" }] }),
            &[("/staticVariables/0", "this looks like a GitHub token (`ghp_…`)")],
        );
    }

    #[test]
    fn suspicions_do_not_hide_a_known_format() {
        let github = unbroken("gh~p_1234567890abcdefghijABCDEFGHIJ123456");
        for count in [0, MOST_HITS - 1, MOST_HITS, MOST_HITS + 1, 50] {
            let code =
                format!("{}const key = '{github}'", "f({password: 'hunter0horse9zq'});\n".repeat(count));
            let found = find(&code, Language::Code);
            assert!(found.has_known_format, "{count}");
            assert!(found.hits.iter().any(|hit| hit.starts_with("a GitHub token")), "{count}");
        }
    }

    #[test]
    fn looks_everywhere_and_never_repeats_the_value() {
        let github = unbroken("gh~p_1234567890abcdefghijABCDEFGHIJ123456");
        check(
            &serde_json::json!({
                "description": format!("uses {github}"),
                "params": [{ "name": "q", "testValue": github }],
                "staticVariables": [{ "apiKey": "k3jh4k5j6h7" }, { "base": "https://a.example/v2" }, { "token": "${T}" }],
                "code": format!("fetch(u, {{ headers: {{ a: '{github}' }} }})"),
                "handler": { "http": { "headers": { "X-Api-Key": "a1b2c3d4e5f6" }, "body": { "clientSecret": "{secret}" } } },
            }),
            &[
                ("/description", "this looks like a GitHub token (`ghp_…`)"),
                ("/params/0/testValue", "this looks like a GitHub token (`ghp_…`)"),
                ("/staticVariables/0/apiKey", "this looks like a literal value of `apiKey`"),
                ("/code", "this looks like a GitHub token (`ghp_…`)"),
                ("/handler/http/headers/X-Api-Key", "this looks like a literal value of `X-Api-Key`"),
            ],
        );
    }
}
