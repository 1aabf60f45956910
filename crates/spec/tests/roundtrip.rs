//! An edit changes only the requested fields and keeps every other byte.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails loudly")]

use proptest::prelude::*;
use serde_json::{Map, Value};
use toolgate_spec::{FieldChange, Format, edit, edit_in_bundle, split_bundle, to_yaml_text};

/// A member as written: key, value, and the white space around both.
#[derive(Clone, Debug)]
struct Written {
    key: String,
    value: String,
    space: [&'static str; 4],
}

fn written(members: &[Written], end: &str) -> String {
    let inside: Vec<String> = members
        .iter()
        .map(|Written { key, value, space: [a, b, c, d] }| format!("{a}{key}{b}:{c}{value}{d}"))
        .collect();
    format!("{{{}{end}}}", inside.join(","))
}

fn space() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&["", " ", "\n", "\n  ", "\r\n\t", "  \n\n "][..])
}

fn raw_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        proptest::sample::select(
            &[
                "null",
                "true",
                "12345678901234567890123",
                "1.10",
                "-0.0",
                "1E+2",
                "18446744073709551615",
                "[ ]",
                "{ }",
                "\"\\u00e9\\/\"",
                "\"\\ud83d\\ude00\"",
                "\"}]\\\"{,:\"",
                "\"é\"",
                "\"\""
            ][..]
        )
        .prop_map(str::to_owned),
        any::<String>().prop_map(|text| Value::from(text).to_string()),
        any::<i32>().prop_map(|number| number.to_string()),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec((space(), inner.clone()), 0..4).prop_map(|items| {
                let items: Vec<String> =
                    items.into_iter().map(|(space, item)| format!("{space}{item}")).collect();
                format!("[{}]", items.join(" ,"))
            }),
            proptest::collection::vec((space(), inner), 0..4).prop_map(|items| {
                let items: Vec<String> = items
                    .into_iter()
                    .enumerate()
                    .map(|(at, (space, item))| format!("{space}\"k{at}\"{space}: {item}"))
                    .collect();
                format!("{{{}}}", items.join(","))
            }),
        ]
    })
}

fn document() -> impl Strategy<Value = (Vec<Written>, &'static str)> {
    let member = (raw_value(), [space(), space(), space(), space()]);
    let members = proptest::collection::vec(member, 0..6).prop_map(|members| {
        let keys = ["\"name\"", "\"\\u0061\"", "\"c d\"", "\"\"", "\"e\\\"f\"", "\"ü\""];
        members
            .into_iter()
            .zip(keys)
            .map(|((value, space), key)| Written { key: key.into(), value, space })
            .collect()
    });
    (members, space())
}

fn changes() -> impl Strategy<Value = Vec<FieldChange<'static>>> {
    let key = proptest::sample::select(&["name", "a", "c d", "", "e\"f", "ü", "draft", "new", "{"][..]);
    let value =
        proptest::option::of(raw_value().prop_map(|raw| serde_json::from_str::<Value>(&raw).expect("JSON")));
    proptest::collection::vec((key, value), 0..5)
}

/// Key and value of each member as written, read with serde_json.
fn raw_members(text: &str) -> Vec<(String, String)> {
    let members: Vec<(String, Box<serde_json::value::RawValue>)> =
        serde_json::from_str::<Raw>(text).expect("an object").0;
    members.into_iter().map(|(key, raw)| (key, raw.get().to_owned())).collect()
}

struct Raw(Vec<(String, Box<serde_json::value::RawValue>)>);

impl<'de> serde::Deserialize<'de> for Raw {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MemberVisitor;
        impl<'de> serde::de::Visitor<'de> for MemberVisitor {
            type Value = Raw;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Raw(members))
            }
        }
        deserializer.deserialize_map(MemberVisitor)
    }
}

fn is_untouched(changes: &[FieldChange<'_>], key: &str) -> bool {
    !changes.iter().any(|(changed, _)| *changed == key)
}

fn after(text: &str, changes: &[FieldChange<'_>]) -> Map<String, Value> {
    let mut value: Map<String, Value> = serde_json::from_str(text).expect("an object");
    for (key, change) in changes {
        match change {
            Some(new) => drop(value.insert((*key).to_owned(), new.clone())),
            None => drop(value.shift_remove(*key)),
        }
    }
    value
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn json_edits_keep_other_members((members, end) in document(), changes in changes()) {
        let text = written(&members, end);
        let edited = edit(&text, Format::Json, &changes).expect("an edit");
        let kept = |text: &str| -> Vec<_> {
            raw_members(text).into_iter().filter(|(key, _)| is_untouched(&changes, key)).collect()
        };
        prop_assert_eq!(kept(&text), kept(&edited));
        prop_assert_eq!(serde_json::from_str::<Map<String, Value>>(&edited).expect("JSON"), after(&text, &changes));
        prop_assert_eq!(edit(&edited, Format::Json, &changes[changes.len().saturating_sub(1)..]).expect("again"), edited);
    }

    #[test]
    fn bundle_edits_keep_other_tools(
        documents in proptest::collection::vec(document(), 1..4), pick in any::<proptest::sample::Index>(), changes in changes()
    ) {
        let texts: Vec<String> = documents.iter().map(|(members, end)| written(members, end)).collect();
        let text = format!("{{ \"x\":1.10,\n\"toolSpecs\" : [{}]\n, \"y\": [ ]}}", texts.join("\n ,"));
        let index = pick.index(texts.len());
        let edited = edit_in_bundle(&text, index, &changes).expect("an edit");
        let entries = split_bundle(&edited).expect("a bundle");
        for (at, (entry, text)) in entries.iter().zip(&texts).enumerate() {
            if at == index {
                prop_assert_eq!(serde_json::from_str::<Map<String, Value>>(entry.raw).expect("JSON"), after(text, &changes));
            } else {
                prop_assert_eq!(entry.raw, text);
            }
        }
    }

    /// A successful YAML edit always yields the document with the changes.
    #[test]
    fn yaml_edits_are_exact((members, end) in document(), changes in changes(), comment in "(# [a-z]{1,5}\n)?") {
        let text = written(&members, end);
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let yaml = format!("{comment}{}{comment}", to_yaml_text(&value));
        prop_assume!(!yaml.contains("\n{") && !yaml.starts_with('{'));
        let edited = edit(&yaml, Format::Yaml, &changes);
        let Ok(edited) = edited else { return Err(TestCaseError::fail(format!("{edited:?} for {yaml}"))) };
        let expected = Value::Object(after(&text, &changes));
        prop_assert_eq!(to_yaml_text(&expected).is_empty(), false);
        let back: Value = serde_saphyr::from_str(&edited).expect("YAML");
        prop_assert_eq!(back, expected);
        prop_assert!(edited.starts_with(&comment));
    }
    /// Any text is either rejected or edited.
    #[test]
    fn edit_never_panics(
        text in prop_oneof!["\\PC{0,60}", "([-a-c1\"'{}\\[\\],&*|>?#é]|: |\n|\r\n|  ){0,24}", "([a-c]: [a-c1|>#\"{}é -]{0,6}(\n  ?[a-c#:-]{0,3})?\n){1,4}"],
        changes in changes()
    ) {
        for format in [Format::Json, Format::Yaml] {
            let _ = edit(&text, format, &changes);
        }
        let _ = edit_in_bundle(&text, 0, &changes);
        let _ = split_bundle(&text);
    }
}
