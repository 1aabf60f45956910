//! Conversion of schemas and of values that match them.

use cedar_policy::EvalResult;
use proptest::prelude::*;

use super::{
    super::{
        convert,
        kind::{CedarMember, CedarRecord, CedarType, Presence},
    },
    *,
};

/// `property: schema` → `Type`, `Type?`, or the reason why it has none.
#[track_caller]
fn check(schema: &Value, expect: &str) {
    let record = CedarRecord::of_input(&json!({"properties": {"a": schema}, "required": ["a"]}));
    let shown = match (record.members.get("a"), record.unseen.get("a")) {
        (Some(member), None) => {
            let optional = if member.presence == Presence::Maybe { "?" } else { "" };
            format!("{}{optional}", name(&member.kind))
        }
        (None, Some(why)) => (*why).to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(shown, expect, "{schema}");
}

fn name(kind: &CedarType) -> String {
    match kind {
        CedarType::Text(None) => "String".to_owned(),
        CedarType::Text(Some(texts)) => format!("String{texts:?}"),
        CedarType::Whole => "Long".to_owned(),
        CedarType::Fraction => "decimal".to_owned(),
        CedarType::Flag => "Bool".to_owned(),
        CedarType::Many(item) => format!("Set<{}>", name(item)),
        CedarType::Record(record) => {
            let members = record.members.iter().map(|(key, member)| {
                let optional = if member.presence == Presence::Maybe { "?" } else { "" };
                format!("{key}{optional}: {}", name(&member.kind))
            });
            let rest = if record.is_whole() { "" } else { ", …" };
            format!("{{{}{rest}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

#[test]
fn supported_types_are_converted() {
    for (schema, expect) in [
        (json!({"type": "string", "pattern": "x"}), "String"),
        (json!({"type": "string", "enum": ["a", "b"]}), "String{\"a\", \"b\"}"),
        (json!({"const": "a"}), "String{\"a\"}"),
        (json!({"enum": ["a", null]}), "String{\"a\"}?"),
        (json!({"enum": [1, 2]}), "Long"),
        (json!({"enum": [1, 2.5]}), "decimal"),
        (json!({"type": "integer"}), "Long"),
        (json!({"type": ["integer", "number"]}), "decimal"),
        (json!({"type": ["boolean", "null"]}), "Bool?"),
        (
            json!({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}),
            "Set<Set<Long>>",
        ),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "String?"),
        (json!({"oneOf": [{"const": "a"}, {"enum": ["b"]}]}), "String{\"a\", \"b\"}"),
        (json!({"oneOf": [{"const": "a"}, {"type": "string"}]}), "String"),
        (json!({"allOf": [{"minLength": 3}, {"type": "string"}]}), "String"),
        (
            json!({"type": "object", "additionalProperties": false, "properties": {"b": {"type": "boolean"}}}),
            "{b?: Bool}",
        ),
        (json!({"type": "object", "properties": {"b": {"type": "boolean"}}}), "{b?: Bool, …}"),
        (
            json!({"type": "object", "additionalProperties": false, "properties": {"b": {"type": "string"}, "c": {}}}),
            "{b?: String, …}",
        ),
    ] {
        check(&schema, expect);
    }
}

#[test]
fn unsupported_types_are_left_out() {
    for (schema, expect) in [
        (json!({}), "its schema does not define its type"),
        (json!(true), "its schema does not define its type"),
        (json!({"type": "null"}), "it allows only null"),
        (json!({"type": ["string", "integer"]}), "its values may have several types"),
        (json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}), "its values may have several types"),
        (json!({"enum": ["a", 1]}), "its values may have several types"),
        (json!({"type": "object"}), "it is an object without declared members"),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "it is an object without declared members",
        ),
        (json!({"type": "array"}), "its schema does not define its items"),
        (json!({"type": "array", "items": {}}), "its items have no single type that Cedar can express"),
        (
            json!({"type": "array", "items": {"type": ["string", "null"]}}),
            "its items may be null, and Cedar has no null",
        ),
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}]}),
            "its items have a type per position, and a Cedar set has no positions",
        ),
    ] {
        check(&schema, expect);
    }
}

#[test]
fn endless_schema_is_cut() {
    let mut schema = json!({"type": "string"});
    for _ in 0..100 {
        schema = json!({"type": "array", "items": schema});
    }
    check(&schema, "its items have no single type that Cedar can express");
}

#[test]
fn numbers_are_converted_exactly_or_rejected() {
    let long = |text: &str| converted(&CedarType::Whole, text);
    let decimal = |text: &str| converted(&CedarType::Fraction, text);
    for (text, expect) in [
        ("3", Some("3")),
        ("3.0", Some("3")),
        ("-3e2", Some("-300")),
        ("9223372036854775807", Some("9223372036854775807")),
        ("9223372036854775808", None),
        ("1e19", None),
        ("3.5", None),
    ] {
        assert_eq!(long(text).as_deref(), expect, "{text}");
    }
    for (text, expect) in [
        ("3", Some("decimal(\"3.0\")")),
        ("-0.5", Some("decimal(\"-0.5\")")),
        ("0.1234", Some("decimal(\"0.1234\")")),
        ("0.12345", None),
        ("1e-7", None),
        ("922337203685477.5", Some("decimal(\"922337203685477.5\")")),
        ("922337203685478", None),
        ("-1e300", None),
        ("18446744073709551615", None),
    ] {
        assert_eq!(decimal(text).as_deref(), expect, "{text}");
    }
}

fn converted(kind: &CedarType, number: &str) -> Option<String> {
    let member = CedarMember { kind: kind.clone(), presence: Presence::Always };
    let record = CedarRecord { members: [("n".to_owned(), member)].into(), ..CedarRecord::default() };
    let value = map(json!({"n": serde_json::from_str::<Value>(number).unwrap()}));
    let input = convert::record(&record, &value, |_| true).ok()?;
    match Context::from_pairs([("input".to_owned(), input)]).unwrap().get("input") {
        Some(EvalResult::Record(record)) => record.get("n").map(ToString::to_string),
        other => panic!("{other:?}"),
    }
}

/// A schema, with a value that matches it.
fn fitting() -> impl Strategy<Value = (Value, Value)> {
    let texts = prop::collection::vec("[a-z]{1,3}", 1..4);
    let leaf = prop_oneof![
        any::<String>().prop_map(|text| (json!({"type": "string"}), json!(text))),
        (texts, any::<prop::sample::Index>())
            .prop_map(|(texts, at)| (json!({"enum": texts}), json!(at.get(&texts)))),
        any::<i64>().prop_map(|whole| (json!({"type": "integer"}), json!(whole))),
        (-1_000_000_000i32..1_000_000_000)
            .prop_map(|scaled| (json!({"type": "number"}), json!(f64::from(scaled) / 10000.0))),
        any::<bool>().prop_map(|flag| (json!({"type": "boolean"}), json!(flag))),
        Just((json!({"type": ["string", "null"]}), Value::Null)),
        Just((json!({}), json!({"__entity": {"type": "Caller", "id": "x"}}))),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            (inner.clone(), 0..3usize).prop_map(|((schema, value), count)| {
                (json!({"type": "array", "items": schema}), json!(vec![value; count]))
            }),
            members(inner).prop_map(|(schema, value)| (schema, Value::Object(value))),
        ]
    })
}

/// An object's schema, with a matching value; some members are optional, and some of these are present.
fn members(
    inner: impl Strategy<Value = (Value, Value)>,
) -> impl Strategy<Value = (Value, Map<String, Value>)> {
    let member = (inner, any::<bool>(), any::<bool>());
    prop::collection::btree_map(prop_oneof!["[a-z]{1,4}", any::<String>()], member, 1..4).prop_map(
        |members| {
            let mut schema = json!({"type": "object", "properties": {}, "required": []});
            let mut value = Map::new();
            for (name, ((inner, fits), is_required, is_there)) in members {
                schema["properties"][&name] = inner;
                if is_required {
                    schema["required"].as_array_mut().unwrap().push(name.clone().into());
                }
                if is_required || is_there {
                    value.insert(name, fits);
                }
            }
            (schema, value)
        },
    )
}

/// A policy that reads all members of these arguments, guarded as Cedar requires.
fn rule_for(input: &CedarRecord) -> String {
    let mut conditions = vec!["true".to_owned()];
    read_all("context.input", input, &mut conditions);
    format!("permit(principal, action == Action::\"t\", resource) when {{ {} }};", conditions.join(" &&\n"))
}

fn read_all(base: &str, record: &CedarRecord, conditions: &mut Vec<String>) {
    for (name, member) in &record.members {
        let quoted = name.chars().flat_map(char::escape_unicode).collect::<String>();
        let path = format!("{base}[\"{quoted}\"]");
        let mut inner = Vec::new();
        match &member.kind {
            CedarType::Text(_) => inner.push(format!("({path} like \"*\")")),
            CedarType::Whole => inner.push(format!("({path} < 0 || {path} >= 0)")),
            CedarType::Fraction => inner.push(format!("({path}.lessThan(decimal(\"0.0\")) || true)")),
            CedarType::Flag => inner.push(format!("({path} || true)")),
            CedarType::Many(item) if item.is_whole() => inner.push(format!("({path}.isEmpty() || true)")),
            CedarType::Many(_) => {}
            CedarType::Record(record) => read_all(&path, record, &mut inner),
        }
        if inner.is_empty() {
            continue;
        }
        let inner = inner.join(" && ");
        conditions.push(match member.presence {
            Presence::Always => inner,
            Presence::Maybe => format!("(if {base} has \"{quoted}\" then {inner} else true)"),
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Every matching value can be converted, and no valid policy that reads it fails.
    #[test]
    fn matching_arguments_are_evaluated((schema, value) in members(fitting())) {
        let mut tool = known("t", "classification: read", &json!({"type": "object"}));
        tool.schema = schema;
        let rule = rule_for(&CedarRecord::of_input(&tool.schema));
        let set = load_for(std::slice::from_ref(&tool), &rule)
            .map_err(|errors| TestCaseError::fail(format!("{}\n{rule}", shown(&errors))))?;
        let ruling = set.decide(&alice(), "t", &value);
        prop_assert_eq!(ruling.verdict, Verdict::Permit, "{}\n{}", ruling.why, rule);
        prop_assert!(set.could_permit(&alice(), "t"));
    }

    /// Arguments that do not match are rejected or evaluated; they never crash.
    #[test]
    fn mismatched_arguments_do_not_crash((schema, _) in members(fitting()), (_, value) in members(fitting())) {
        let mut tool = known("t", "classification: read", &json!({"type": "object"}));
        tool.schema = schema;
        let rule = rule_for(&CedarRecord::of_input(&tool.schema));
        let set = load_for(std::slice::from_ref(&tool), &rule).unwrap();
        let _ = set.decide(&alice(), "t", &value);
    }

    /// A tool is hidden only if no call of it is permitted.
    #[test]
    fn permitted_tool_is_listed(
        rules in prop::collection::vec((0..3usize, condition()), 1..5),
        path in "[ab]{0,2}",
        lines in prop::option::of(0..4i64),
    ) {
        let heads = ["permit", "forbid", "@approval(\"x\") forbid"];
        let mut text = String::new();
        for (head, condition) in &rules {
            let head = heads[*head];
            writeln!(text, "{head}(principal, action == Action::\"read_file\", resource) when {{ {condition} }};").unwrap();
        }
        // Cedar proves that some of them never match, and rejects those.
        let Ok(set) = load_for(&tools(), &text) else { return Ok(()) };
        let mut input = map(json!({"path": path}));
        if let Some(lines) = lines {
            input.insert("lines".to_owned(), lines.into());
        }
        let ruling = set.decide(&alice(), "read_file", &input);
        prop_assert!(ruling.verdict == Verdict::Forbid || set.could_permit(&alice(), "read_file"), "{}", text);
    }
}

fn condition() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("context.input.path == \"a\""),
        Just("context.input.path like \"*b\""),
        Just("(context.input has lines && context.input.lines > 1)"),
        Just("principal in Permission::\"files.read\""),
        Just("principal in Permission::\"other\""),
        Just("resource.level > 3"),
        Just("resource.classification == \"read\""),
    ];
    leaf.prop_map(str::to_owned).prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|one| format!("!({one})")),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("({one} && {other})")),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("({one} || {other})")),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("(if {a} then {b} else {c})")),
        ]
    })
}
