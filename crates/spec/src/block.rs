//! The governance blocks, their keys in both kinds of documents, and keys that only look like one.

use std::collections::BTreeSet;

use crate::{lint::name_looks, similar};

/// Each block, and how many levels of it use null for "not said". In a JSON Schema null is a value like any other.
pub(crate) const BLOCKS: [(&str, usize); 11] = [
    ("classification", 0),
    ("profile", 0),
    ("permissions", 1),
    ("input", 0),
    ("testInput", 0),
    ("output", 0),
    ("outputPolicy", 0),
    ("piiFields", 0),
    ("capability", 2),
    ("policy", 0),
    ("touches", 1),
];

/// The key of a block in a manifest or a Safe Tool Spec. `None` if that kind of document has no such block.
pub(crate) fn key_of_block(block: &str, is_manifest: bool) -> Option<String> {
    if is_manifest {
        return Some(block.to_owned());
    }
    (!ONLY_IN_MANIFESTS.contains(&block)).then(|| format!("{PREFIX}{block}"))
}

/// The keys of all blocks of a Safe Tool Spec.
pub(crate) fn prefixed_keys() -> impl Iterator<Item = String> {
    BLOCKS.iter().filter_map(|(block, _)| key_of_block(block, false))
}

/// Explains what to write instead of a key of a Safe Tool Spec that reads like a guard and has no effect.
///
/// Letter case, separators, look-alike letters and invisible characters are ignored, because readers do not see them.
pub(crate) fn remedy_for_void_guard(key: &str) -> Option<String> {
    if prefixed_keys().any(|known| known == key) || GUARDS.contains(&key) {
        return None;
    }
    let looks: BTreeSet<String> = name_looks(key).iter().map(|look| letters_of(look)).collect();
    let is_named = |name: &str| looks.contains(&letters_of(name));
    if let Some(guard) = GUARDS.into_iter().find(|guard| is_named(guard)) {
        return Some(format!("write `{guard}`"));
    }
    for (block, _) in BLOCKS {
        if is_named(block) || PREFIXES.iter().any(|prefix| is_named(&format!("{prefix}{block}"))) {
            return Some(match key_of_block(block, false) {
                Some(known) => format!("write `{known}`"),
                None if block == "policy" => {
                    format!("write `{PREFIX}capability: {{approval: {{level: …}}}}`")
                }
                None => "declare the arguments in `params`, each with its `testValue`".to_owned(),
            });
        }
    }
    let known: Vec<String> = prefixed_keys().collect();
    if let Some(close) = similar::closest(key, known.iter().map(String::as_str).chain(GUARDS)) {
        return Some(format!("did you mean `{close}`?"));
    }
    let is_ours = looks.iter().any(|look| look.starts_with(&letters_of(PREFIX)));
    is_ours.then(|| format!("known: {}", known.join(", ")))
}

/// Is the key in our namespace, however it is spelled?
pub(crate) fn is_prefixed(key: &str) -> bool {
    name_looks(key).iter().any(|look| letters_of(look).starts_with(&letters_of(PREFIX)))
}

/// The letters and digits of a name, in lower case.
fn letters_of(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

const PREFIX: &str = "x-toolgate-";

/// Beginnings that an author may have meant as [`PREFIX`].
const PREFIXES: [&str; 2] = [PREFIX, "toolgate-"];

const ONLY_IN_MANIFESTS: [&str; 3] = ["input", "testInput", "policy"];

/// Fields of the Safe Tool Spec whose loss would leave a tool with fewer questions or denials than its author wrote.
const GUARDS: [&str; 2] = ["humanInTheLoop", "sandboxOverrides"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_block_has_a_remedy() {
        for (block, _) in BLOCKS {
            let spellings = [
                block.to_owned(),
                block.to_uppercase(),
                format!("x-Toolgate-{block}"),
                format!("X-TOOLGATE-{}", block.to_uppercase()),
                format!("x_toolgate_{block}"),
                format!("xToolgate{block}"),
                format!("toolgate-{block}"),
                format!("x\u{2011}toolgate\u{2011}{block}"),
                format!("x-t\u{43e}\u{43e}lgate-{block}"),
                format!("{block}\u{200b}"),
                format!(" {block}"),
            ];
            for spelling in spellings {
                let remedy = remedy_for_void_guard(&spelling).unwrap_or_else(|| panic!("{spelling:?}"));
                if let Some(key) = key_of_block(block, false) {
                    assert_eq!(remedy, format!("write `{key}`"), "{spelling:?}");
                }
            }
        }
    }

    #[test]
    fn other_guards_and_misspelt_prefixes_have_a_remedy() {
        for (key, expect) in [
            ("HumanInTheLoop", "write `humanInTheLoop`"),
            ("human_in_the_loop", "write `humanInTheLoop`"),
            ("sandbox-overrides", "write `sandboxOverrides`"),
            ("humanInTheLop", "did you mean `humanInTheLoop`?"),
            ("x-toolgat-permissions", "did you mean `x-toolgate-permissions`?"),
            ("x-toolgate-permisions", "did you mean `x-toolgate-permissions`?"),
            ("policy", "write `x-toolgate-capability: {approval: {level: …}}`"),
            ("testInput", "declare the arguments in `params`, each with its `testValue`"),
        ] {
            assert_eq!(remedy_for_void_guard(key).as_deref(), Some(expect), "{key}");
        }
        assert!(remedy_for_void_guard("x-toolgate-else").is_some_and(|remedy| remedy.starts_with("known: ")));
    }

    #[test]
    fn vendor_fields_are_left_alone() {
        for key in
            ["x-permissions", "x-owner", "icon", "version", "author", "outputs", "x-vendor-note", "i18n"]
        {
            assert_eq!(remedy_for_void_guard(key), None, "{key}");
        }
        for key in prefixed_keys() {
            assert_eq!(remedy_for_void_guard(&key), None, "{key}");
        }
    }
}
