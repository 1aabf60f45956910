//! Changes that affect the digest, and changes that do not.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails loudly")]

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_spec::{Format, ToolDigest, check_text, digest, reviewed_form};

/// The digest of a document's text; the document must be valid.
#[track_caller]
fn digest_of(text: &str, format: Format) -> ToolDigest {
    let file = check_text(text, format);
    let tool = file.tools.first().unwrap_or_else(|| panic!("no tool: {:?}", file.findings));
    let spec = tool.spec.as_ref().unwrap_or_else(|| panic!("unsound: {:?}\n{text}", tool.findings));
    digest(spec, &tool.document)
}

#[track_caller]
fn of(document: &Value) -> ToolDigest {
    digest_of(&document.to_string(), Format::Json)
}

/// `document` with the value at `pointer` replaced, or a new member where the last token is new.
fn with(document: &Value, pointer: &str, value: Value) -> Value {
    let mut changed = document.clone();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    match changed.pointer_mut(parent).expect("a parent") {
        Value::Object(members) => drop(members.insert(key.to_owned(), value)),
        Value::Array(items) => items[key.parse::<usize>().expect("an index")] = value,
        other => panic!("{other} has no members"),
    }
    changed
}

#[track_caller]
fn check_same(one: &Value, pointer: &str, value: Value) {
    let other = with(one, pointer, value);
    assert_eq!(of(one), of(&other), "{pointer} must not change the digest: {other}");
}

#[track_caller]
fn check_differs(one: &Value, pointer: &str, value: Value) {
    let other = with(one, pointer, value);
    assert_ne!(of(one), of(&other), "{pointer} must change the digest: {other}");
}

fn minimal() -> Value {
    json!({ "name": "echo", "code": "return 1", "codeType": "Javascript" })
}

fn full_spec() -> Value {
    json!({
        "toolId": "a1", "name": "echo", "description": "Says it again", "category": "TEXT", "tags": ["util"],
        "params": [
            { "name": "text", "description": "What", "required": true, "type": "STRING", "testValue": "hello" },
            { "name": "times", "description": "How often", "required": false, "type": "INTEGER" },
        ],
        "staticVariables": [{ "apiKey": "${KEY}" }, { "base": "x" }],
        "code": "return text", "codeType": "Javascript",
        "sandboxOverrides": {
            "addAllowClasses": ["a.B"], "removeAllowClasses": ["c.D"], "addDenyClasses": ["e.F"],
            "removeDenyClasses": ["g.H"], "networkMode": "allowlist", "hostsAllow": ["example.com"],
            "fileRead": true, "fileWrite": false, "fsBasePath": "/data", "destructive": false,
        },
        "humanInTheLoop": { "mode": "REQUIRED", "promptTemplate": "sure?", "x-note": 1 },
        "x-toolgate-classification": "read", "x-toolgate-profile": "p",
        "x-toolgate-permissions": { "required": ["a"], "elevated": [{ "when": { "const": null }, "require": ["b"] }] },
        "x-toolgate-output": { "type": "object" }, "x-toolgate-outputPolicy": { "*": "allow" },
        "x-toolgate-piiFields": ["..email"],
        "x-toolgate-capability": { "approval": { "level": "ask" } },
        "x-vendor-note": { "deep": [1, null] }, "icon": { "vendor": true },
    })
}

fn full_manifest() -> Value {
    json!({
        "name": "lookup", "classification": "read", "profile": "p", "permissions": { "required": ["a"] },
        "input": { "type": "object", "required": ["id"], "properties": { "id": { "type": "string", "default": null } } },
        "testInput": { "id": "7" }, "output": { "type": "object" }, "outputPolicy": { "*": "allow" },
        "piiFields": ["..email"], "capability": { "execution": { "timeout": 1000, "networkMode": "none" } },
        "policy": { "approval": "ask" }, "x-mine": 1,
        "handler": { "http": { "url": "https://example.com/a", "method": "POST", "body": { "a": null, "id": "{id}" } } },
    })
}

#[test]
fn defaults_may_be_written_out_or_be_null() {
    for (pointer, values) in [
        ("/toolId", vec![json!(null), json!("")]),
        ("/description", vec![json!(null), json!("")]),
        ("/category", vec![json!(null)]),
        ("/tags", vec![json!(null), json!([])]),
        ("/params", vec![json!(null), json!([])]),
        ("/staticVariables", vec![json!(null), json!([])]),
        (
            "/sandboxOverrides",
            vec![
                json!(null),
                json!({}),
                json!({ "addAllowClasses": null, "hostsAllow": [], "networkMode": null, "fileRead": null,
                    "fileWrite": null, "fsBasePath": null, "destructive": false }),
            ],
        ),
        (
            "/humanInTheLoop",
            vec![json!(null), json!({}), json!({ "mode": "DISABLED", "promptTemplate": null })],
        ),
        ("/x-toolgate-classification", vec![json!(null)]),
        ("/x-toolgate-profile", vec![json!(null)]),
        ("/x-toolgate-permissions", vec![json!(null)]),
        ("/x-toolgate-output", vec![json!(null)]),
        ("/x-toolgate-outputPolicy", vec![json!(null)]),
        ("/x-toolgate-piiFields", vec![json!(null)]),
        ("/x-toolgate-capability", vec![json!(null)]),
        ("/x-toolgate-touches", vec![json!(null)]),
    ] {
        for value in values {
            check_same(&minimal(), pointer, value);
        }
    }
    check_same(&full_spec(), "/x-toolgate-capability/approval/trustAfterApproval", json!(null));
    check_same(&full_spec(), "/x-toolgate-capability/network", json!(null));
    check_same(&full_manifest(), "/handler/http/timeout", json!(null));
    check_same(&full_manifest(), "/capability/execution/env", json!(null));
    let param = json!([{ "name": "a", "required": false, "type": "STRING" }]);
    let one = with(&minimal(), "/params", param);
    check_same(&one, "/params/0/description", json!(null));
    check_same(&one, "/params/0/description", json!(""));
    check_same(&one, "/params/0/testValue", json!(null));
}

#[test]
fn derived_id_does_not_change_the_digest() {
    let file = check_text(&minimal().to_string(), Format::Json);
    let derived = file.tools[0].spec.as_ref().expect("sound").id.as_str().to_owned();
    check_same(&minimal(), "/toolId", json!(derived));
}

#[test]
fn bookkeeping_does_not_change_the_digest() {
    for document in [full_spec(), full_manifest()] {
        check_same(
            &document,
            "/toolSafety",
            json!({ "version": "1.0", "runtime": { "helpers": ["safety.fs/v1"] } }),
        );
        check_same(&document, "/draft", json!(true));
        check_same(&document, "/draft", json!(false));
        check_same(&document, "/createTimestamp", json!(1));
        check_same(&document, "/updateTimestamp", json!(2));
        check_same(&document, "/$schema", json!("https://example.com/s.json"));
    }
}

#[test]
fn every_spec_field_changes_the_digest() {
    let more = "other";
    for (pointer, value) in [
        ("/toolId", json!("a2")),
        ("/name", json!("echo2")),
        ("/description", json!("Says it again ")),
        ("/category", json!(null)),
        ("/category", json!("")),
        ("/tags", json!([])),
        ("/tags/0", json!("geo")),
        ("/params", json!([])),
        ("/params/0/name", json!("texts")),
        ("/params/0/description", json!("")),
        ("/params/0/required", json!(false)),
        ("/params/1/type", json!("NUMBER")),
        ("/params/0/testValue", json!("hullo")),
        ("/params/1/testValue", json!("2")),
        ("/staticVariables", json!([{ "base": "x" }, { "apiKey": "${KEY}" }])),
        ("/staticVariables", json!([{ "apiKey": "${KEY}" }, { "base": "x" }, { "base": "x" }])),
        ("/staticVariables/0", json!({ "apiKey": "${KEY2}" })),
        ("/staticVariables/1", json!({ "base2": "x" })),
        ("/code", json!("return text;")),
        ("/sandboxOverrides/addAllowClasses", json!([])),
        ("/sandboxOverrides/removeAllowClasses", json!([])),
        ("/sandboxOverrides/addDenyClasses", json!([])),
        ("/sandboxOverrides/removeDenyClasses", json!([])),
        ("/sandboxOverrides/networkMode", json!("strict")),
        ("/sandboxOverrides/networkMode", json!(null)),
        ("/sandboxOverrides/hostsAllow", json!(["example.com", "example.org"])),
        ("/sandboxOverrides/fileRead", json!(false)),
        ("/sandboxOverrides/fileRead", json!(null)),
        ("/sandboxOverrides/fileWrite", json!(null)),
        ("/sandboxOverrides/fsBasePath", json!("/data2")),
        ("/sandboxOverrides/destructive", json!(true)),
        ("/humanInTheLoop/mode", json!("DISABLED")),
        ("/humanInTheLoop/promptTemplate", json!(null)),
        ("/humanInTheLoop/x-note", json!(2)),
        ("/x-toolgate-classification", json!("write")),
        ("/x-toolgate-profile", json!(more)),
        ("/x-toolgate-permissions/required/0", json!(more)),
        ("/x-toolgate-permissions/elevated/0/when", json!({})),
        ("/x-toolgate-permissions/elevated/0/require/0", json!(more)),
        ("/x-toolgate-output/title", json!("Result")),
        ("/x-toolgate-outputPolicy", json!({})),
        ("/x-toolgate-outputPolicy", json!(null)),
        ("/x-toolgate-piiFields/0", json!("..phone")),
        ("/x-toolgate-capability/approval/level", json!("always")),
        ("/x-vendor-note/deep", json!([1])),
        ("/x-vendor-note", json!(null)),
        ("/x-new", json!(null)),
        ("/icon/vendor", json!(false)),
    ] {
        check_differs(&full_spec(), pointer, value);
    }
}

#[test]
fn every_manifest_field_changes_the_digest() {
    for (pointer, value) in [
        ("/name", json!("lookup2")),
        ("/classification", json!("write")),
        ("/profile", json!("q")),
        ("/permissions/required/0", json!("b")),
        ("/input/title", json!("Input")),
        ("/input/properties/id", json!({ "type": "string" })),
        ("/testInput/id", json!("8")),
        ("/output/title", json!("Result")),
        ("/outputPolicy/..email", json!("redact")),
        ("/piiFields/0", json!("..phone")),
        ("/capability/execution/timeout", json!(1001)),
        ("/capability/execution/networkMode", json!(null)),
        ("/policy", json!(null)),
        ("/x-mine", json!(2)),
        ("/handler/http/url", json!("https://example.com/b")),
        ("/handler/http/method", json!("PUT")),
        ("/handler/http/body", json!({ "id": "{id}" })),
        ("/handler/http/body/a", json!(1)),
        ("/handler/http/headers", json!({ "accept": "text/plain" })),
        ("/handler", json!({ "cli": { "command": "/bin/echo", "args": ["--", "{id}"] } })),
    ] {
        check_differs(&full_manifest(), pointer, value);
    }
}

#[test]
fn json_and_yaml_agree() {
    let yaml = "code: return 1   # why not\ncodeType: 'Javascript'\nname: echo\nx-a: {b: 1.0, c: [~]}\n";
    let json = "{\"x-a\": {\"c\": [null], \"b\": 1}, \"name\":\t\"\\u0065cho\", \"codeType\": \"Javascript\", \"code\": \"return 1\"}";
    assert_eq!(digest_of(yaml, Format::Yaml), digest_of(json, Format::Json));
}

#[test]
fn digests_are_stable() {
    let mut shown = String::new();
    for document in [minimal(), full_spec(), full_manifest()] {
        writeln!(shown, "{}", of(&document)).expect("text");
    }
    assert_eq!(shown, GOLDEN);
}

#[test]
fn worked_example_in_docs_is_correct() {
    let manual = include_str!("../../../docs/digest.md");
    let block = |language: &str| {
        let from = manual.split_once(&format!("```{language}\n")).expect("a block").1;
        from.split_once("\n```").expect("its end").0
    };
    let file = check_text(block("yaml"), Format::Yaml);
    let tool = &file.tools[0];
    let spec = tool.spec.as_ref().unwrap_or_else(|| panic!("{:?}", tool.findings));
    let canonical =
        serde_json_canonicalizer::to_string(&reviewed_form(spec, &tool.document)).expect("canonical");
    assert_eq!(canonical, block("json"));
    assert_eq!(digest(spec, &tool.document).to_string(), block("text"));
}

#[test]
fn digest_parses_only_its_display_form() {
    let shown = of(&minimal()).to_string();
    assert_eq!(ToolDigest::parse(&shown), Some(of(&minimal())));
    for wrong in [&shown[7..], &shown[..70], &format!("{shown}0"), &shown.to_uppercase(), "sha256:", ""] {
        assert_eq!(ToolDigest::parse(wrong), None, "{wrong}");
    }
}

proptest! {
    #[test]
    fn key_order_and_white_space_do_not_change_the_digest(seed in proptest::collection::vec(any::<u32>(), 8)) {
        for document in [full_spec(), full_manifest()] {
            let shuffled = shuffle(&document, &seed, &mut 0);
            let pretty = serde_json::to_string_pretty(&shuffled).expect("text");
            prop_assert_eq!(of(&document), digest_of(&pretty, Format::Json));
        }
    }

    #[test]
    fn unknown_fields_change_the_digest(key in "x-[a-z]{1,8}", one in any::<i32>(), other in any::<i32>()) {
        prop_assume!(one != other && !key.starts_with("x-toolgate"));
        let pointer = format!("/{key}");
        prop_assert_ne!(of(&with(&minimal(), &pointer, json!(one))), of(&with(&minimal(), &pointer, json!(other))));
        prop_assert_ne!(of(&with(&minimal(), &pointer, json!(one))), of(&minimal()));
    }

    #[test]
    fn different_code_has_a_different_digest(one in "\\PC{1,40}", other in "\\PC{1,40}") {
        prop_assume!(one != other);
        let code = |text: &str| of(&with(&minimal(), "/code", json!(format!("return {}", json!(text)))));
        let description = |text: &str| of(&with(&minimal(), "/description", json!(text)));
        prop_assert_ne!(code(&one), code(&other));
        prop_assert_ne!(description(&one), description(&other));
    }
}

/// The same value with the members of every object in another order.
fn shuffle(value: &Value, seed: &[u32], turn: &mut usize) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(key, member)| (key.clone(), shuffle(member, seed, turn))).collect();
            for at in (1..members.len()).rev() {
                *turn += 1;
                members.swap(at, seed[*turn % seed.len()] as usize % (at + 1));
            }
            Value::Object(members.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(|item| shuffle(item, seed, turn)).collect(),
        other => other.clone(),
    }
}

const GOLDEN: &str = "\
sha256:d7bb9bdf7c1a2372696735942fcb007f5c2e7c91a2d78c3101029cea99ebf6ea
sha256:82bc102d05377fda1b9e276554d2ca33a5a598c18a59b4748a712291384cf976
sha256:513bcfe6ad462edfb20b5fe191ea7ecc64e90b926d7729dc992d199cb62597a1
";
