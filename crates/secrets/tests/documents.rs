//! The providers in `docs/secret-rules.md` are those of the rules, and its example is a rule. `make bless` rewrites the table.
#![allow(clippy::disallowed_methods, reason = "compares with a file")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use toolgate_secrets::{Detector, RuleFile};

#[test]
fn providers_are_documented() {
    let mut tiers: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for rule in Detector::shipped().unwrap().rules() {
        tiers.entry(rule.tier).or_default().insert(rule.provider);
    }
    let mut table = String::from("|tier|providers|\n|---|---|\n");
    let mut listed = BTreeSet::new();
    for (tier, mut providers) in tiers.into_iter().rev() {
        providers.retain(|provider| listed.insert(provider.to_owned()));
        if !providers.is_empty() {
            let names: Vec<_> = providers.into_iter().collect();
            writeln!(table, "|{}|{}|", tier.name(), names.join(", ")).unwrap();
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/secret-rules.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- providers -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- /providers -->").unwrap();
    let expected = format!("{before}<!-- providers -->\n{table}<!-- /providers -->{after}");
    if std::env::var_os("TOOLGATE_BLESS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap();
    assert!(
        committed == expected,
        "docs/secret-rules.md is not what the rules say; run `make bless` and review the change"
    );
}

#[test]
fn documented_rule_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/secret-rules.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once("```json\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let own = RuleFile { name: "secret-rules.md", text: example };
    Detector::with(&[own], &[]).unwrap();
}

/// Rule files and test texts are in the repository; other scanners must not report them as leaks.
#[test]
fn nothing_in_the_repository_is_a_definite_secret() {
    let detector = Detector::shipped().unwrap();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/secrets")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("\"pattern\""));
        for line in lines {
            let found = detector.scan(line).into_iter().find(|found| {
                found.tier == toolgate_secrets::Tier::Definite
                    && found.encoding == toolgate_secrets::Encoding::Plain
            });
            assert!(found.is_none(), "{}: {found:?} in {line}", path.display());
        }
    }
}
