//! Governance blocks, their keys in both document kinds, and misspelt keys that resemble them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{Schema, lint::name_looks, similar};

/// Each block, and how many levels of it treat null as absent. In a JSON Schema null is an ordinary value.
pub(crate) const BLOCKS: [(&str, usize); 12] = [
    ("classification", 0),
    ("exposed", 0),
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

/// Suggests a replacement for a key of a Safe Tool Spec that looks like a guard but has no effect.
///
/// Letter case, separators, look-alike letters and invisible characters are ignored, because readers do not see them.
pub(crate) fn remedy_for_void_guard(key: &str) -> Option<String> {
    if prefixed_keys().any(|known| known == key) || GUARDS.contains(&key) {
        return None;
    }
    let looks = looks_of(key);
    let is_named = |name: &str| looks.contains(&letters_of(name));
    if let Some(guard) = GUARDS.into_iter().find(|guard| is_named(guard)) {
        return Some(format!("write `{guard}`"));
    }
    if let Some((_, meant)) = OTHER_NAMES.into_iter().find(|(name, _)| is_named(name)) {
        return Some(format!("write `{meant}`"));
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
    let blocks = BLOCKS.into_iter().filter(|(block, _)| !COMMON_WORDS.contains(block));
    let bare =
        if key.starts_with("x-") { None } else { similar::closest(key, blocks.map(|(block, _)| block)) };
    if let Some(known) = bare.and_then(|block| key_of_block(block, false)) {
        return Some(format!("did you mean `{known}`?"));
    }
    let is_ours =
        PREFIXES.iter().any(|prefix| looks.iter().any(|look| look.starts_with(&letters_of(prefix))));
    is_ours.then(|| format!("known: {}", known.join(", ")))
}

/// Says where a setting belongs that a Safe Tool Spec has at its top level, where it has no effect.
pub(crate) fn remedy_for_misplaced_setting(key: &str, value: &Value) -> Option<String> {
    let looks = looks_of(key);
    let is_named = |name: &str| looks.contains(&letters_of(name));
    if properties("/$defs/sandboxOverrides").any(|(name, _)| is_named(name)) {
        return Some("write it inside `sandboxOverrides`".to_owned());
    }
    for (section, schema) in properties("/$defs/capability") {
        let settings = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let settings: Vec<&String> = settings.collect();
        // A setting of one word, such as `timeout`, may be a vendor's field.
        if settings.iter().any(|name| name.contains(char::is_uppercase) && is_named(name)) {
            return Some(format!("write it inside `{PREFIX}capability: {{{section}: …}}`"));
        }
        let has_setting =
            || value.as_object().is_some_and(|held| settings.iter().any(|name| held.contains_key(*name)));
        if is_named(section) && (section == "approval" || has_setting()) {
            return Some(format!("write it inside `{PREFIX}capability`"));
        }
    }
    None
}

/// Whether a key looks like a guard of a tool, spelled correctly or not.
pub(crate) fn reads_like_guard(key: &str, value: &Value) -> bool {
    prefixed_keys().any(|known| known == key)
        || GUARDS.contains(&key)
        || remedy_for_void_guard(key).is_some()
        || remedy_for_misplaced_setting(key, value).is_some()
}

fn properties(definition: &str) -> impl Iterator<Item = (&'static String, &'static Value)> {
    let definition = Schema::SafeToolSpec.document().pointer(definition);
    definition.and_then(|one| one.get("properties")).and_then(Value::as_object).into_iter().flatten()
}

/// Whether the key is in the `x-toolgate-` namespace, in any spelling.
pub(crate) fn is_prefixed(key: &str) -> bool {
    name_looks(key).iter().any(|look| letters_of(look).starts_with(&letters_of(PREFIX)))
}

fn looks_of(key: &str) -> BTreeSet<String> {
    name_looks(key).iter().map(|look| letters_of(look)).collect()
}

/// The letters and digits of a name, in lower case.
fn letters_of(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

const PREFIX: &str = "x-toolgate-";

/// Prefixes that an author may have meant as [`PREFIX`].
const PREFIXES: [&str; 2] = [PREFIX, "toolgate-"];

/// Common wrong names of a guard, with the real name.
const OTHER_NAMES: [(&str, &str); 3] = [
    ("capabilities", "x-toolgate-capability"),
    ("humanInLoop", "humanInTheLoop"),
    ("requiresApproval", "x-toolgate-capability: {approval: {level: always}}"),
];

/// Block names that are too common to reject keys that only resemble them.
const COMMON_WORDS: [&str; 5] = ["input", "testInput", "output", "policy", "profile"];

const ONLY_IN_MANIFESTS: [&str; 3] = ["input", "testInput", "policy"];

/// Fields of the Safe Tool Spec that must not be lost: without them the tool would have fewer approvals or denials.
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
            ("permission", "did you mean `x-toolgate-permissions`?"),
            ("touch", "did you mean `x-toolgate-touches`?"),
            ("piifield", "did you mean `x-toolgate-piiFields`?"),
            ("classificaton", "did you mean `x-toolgate-classification`?"),
            ("capabilities", "write `x-toolgate-capability`"),
            ("human_in_loop", "write `humanInTheLoop`"),
            ("requiresApproval", "write `x-toolgate-capability: {approval: {level: always}}`"),
            ("testInput", "declare the arguments in `params`, each with its `testValue`"),
        ] {
            assert_eq!(remedy_for_void_guard(key).as_deref(), Some(expect), "{key}");
        }
        for key in ["x-toolgate-else", "toolgate", "toolgate-approval"] {
            let remedy = remedy_for_void_guard(key);
            assert!(remedy.is_some_and(|remedy| remedy.starts_with("known: ")), "{key}");
        }
    }

    #[test]
    fn settings_outside_their_block_have_a_remedy() {
        let (nothing, network) = (Value::Null, serde_json::json!({ "blockedHosts": [] }));
        for (key, value, expect) in [
            ("destructive", &nothing, "write it inside `sandboxOverrides`"),
            ("networkMode", &nothing, "write it inside `sandboxOverrides`"),
            ("network_mode", &nothing, "write it inside `sandboxOverrides`"),
            ("approval", &nothing, "write it inside `x-toolgate-capability`"),
            ("network", &network, "write it inside `x-toolgate-capability`"),
            ("dangerPatterns", &nothing, "write it inside `x-toolgate-capability: {approval: …}`"),
            ("blockedPaths", &nothing, "write it inside `x-toolgate-capability: {execution: …}`"),
        ] {
            assert_eq!(remedy_for_misplaced_setting(key, value).as_deref(), Some(expect), "{key}");
        }
        let vendor = serde_json::json!({ "app": "shop" });
        for key in ["labels", "data", "audit", "network", "timeout", "level", "extends", "x-networkMode"] {
            assert_eq!(remedy_for_misplaced_setting(key, &vendor), None, "{key}");
        }
    }

    #[test]
    fn vendor_fields_are_accepted() {
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
