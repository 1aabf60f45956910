//! Every secret form that the reference specifications name is found, with the required tier.
#![allow(clippy::unwrap_used, reason = "a test fails loudly")]

mod known;

use toolgate_secrets::{Detector, Tier};

use known::known;

#[test]
fn every_known_form_is_found_by_its_name() {
    let detector = Detector::shipped().unwrap();
    let mut wrong = Vec::new();
    for one in known() {
        let surest = detector.contains(one.text.as_bytes(), Tier::Possible);
        let told = surest.as_ref().map(|found| (found.tier, &*found.provider));
        if told != Some((one.tier, one.provider)) {
            wrong.push(format!("{}: {told:?} instead of {:?}", one.name, (one.tier, one.provider)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The whole secret is redacted, whatever surrounds it.
#[test]
fn adjacent_text_does_not_hide_a_definite_form() {
    let detector = Detector::shipped().unwrap();
    let mut wrong = Vec::new();
    let keys = known().into_iter().filter(|one| matches!(one.provider, "openai" | "anthropic"));
    for one in keys {
        let key = &one.text;
        for text in [
            format!("use {key}, please"),
            format!("({key})"),
            format!("https://api.example/v1?q=a%20{key}"),
            format!("{{\\\"key\\\":\\\"a\\n{key}\\\"}}"),
            format!("OPENAI_{key}"),
            format!("{key}/v1"),
            format!("sk-{key}"),
            key.replace('-', "%2D"),
            key.replace('-', "\\u002d"),
            key.replace('-', "–"),
            key.chars().flat_map(|character| [character, ' ']).collect(),
            format!("{}\n{}", &key[..20], &key[20..]),
            base64(key),
            base64(&format!("a {key}")),
        ] {
            let redacted = detector.redact(&text, Tier::Definite).text.into_owned();
            if !redacted.contains(&format!("[REDACTED:api-key:{}]", one.provider)) || left(key, &redacted) {
                wrong.push(format!("{}: {text} → {redacted}", one.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The provider that is named before the value wins.
#[test]
fn named_provider_wins() {
    let detector = Detector::shipped().unwrap();
    let key = known().into_iter().find(|one| one.provider == "openai").unwrap().text;
    for (text, provider) in
        [(format!("STABILITY_KEY={key}"), "stability"), (format!("OPENAI_KEY={key}"), "openai")]
    {
        let found = detector.contains(text.as_bytes(), Tier::Possible).unwrap();
        assert_eq!((&*found.provider, found.tier), (provider, Tier::Definite));
    }
}

#[test]
fn key_prefixes_alone_are_not_keys() {
    let detector = Detector::shipped().unwrap();
    let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    for text in [
        format!("sk-{}", "x".repeat(48)),
        format!("sk-{}", "X".repeat(60)),
        format!("sk-proj-{}", "x".repeat(48)),
        format!("sk-ant-{}", "x".repeat(95)),
        format!("sk-{}", "0".repeat(48)),
        "sk-learn-and-other-libraries-for-machine-learning-in-2026-and-later".to_owned(),
        "sk-proj-your-api-key-goes-here-and-nowhere-else-in-2026".to_owned(),
        "sk-admin-panel-of-the-shop-with-42-pages-and-no-end-in-sight".to_owned(),
        format!("sk-ant-{}", "your-key-goes-here-".repeat(6)),
        format!("task-{digest}"),
        format!("disk-{digest} risk-{digest}"),
        format!("sk-SK {digest}"),
        // Programs search for the first line of a key; without a body it is not a key.
        "-----BEGIN RSA PRIVATE KEY-----".to_owned(),
        "sk-proj-...".to_owned(),
        "sk-<your key>".to_owned(),
    ] {
        assert_eq!(detector.scan(&text), [], "{text}");
    }
}

/// Whether more of the key is visible than its public prefix.
fn left(key: &str, redacted: &str) -> bool {
    key.as_bytes().windows(12).skip(13).any(|part| redacted.as_bytes().windows(12).any(|other| other == part))
}

fn base64(text: &str) -> String {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    BASE64_STANDARD.encode(text)
}
