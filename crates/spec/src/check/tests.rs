use serde_json::{Value, json};

use super::*;
use crate::{
    LineIndex,
    model::{ApprovalMode, Body, NetworkMode},
};

fn sound() -> Value {
    json!({ "name": "t", "code": "return 1", "codeType": "Javascript" })
}

fn with(change: &Value) -> Value {
    let mut document = sound();
    for (key, value) in change.as_object().unwrap() {
        document[key] = value.clone();
    }
    document
}

/// The errors of a document, as `CODE pointer`.
fn errors(document: &Value) -> Vec<String> {
    let file = check_text(&document.to_string(), Format::Json);
    let of_tools = file.tools.iter().flat_map(|tool| &tool.findings);
    let mut said: Vec<String> = file
        .findings
        .iter()
        .chain(of_tools)
        .filter(|finding| finding.is_error())
        .map(|finding| format!("{} {}", finding.code.name(), finding.at.as_str()))
        .collect();
    said.sort();
    said
}

#[track_caller]
fn check_errors(change: &Value, expect: &[&str]) {
    assert_eq!(errors(&with(change)), expect, "{change}");
}

#[track_caller]
fn spec_of(document: &Value) -> ToolSpec {
    let file = check_text(&document.to_string(), Format::Json);
    file.tools
        .into_iter()
        .next()
        .and_then(|tool| tool.spec)
        .unwrap_or_else(|| panic!("not sound: {document}"))
}

#[test]
fn absent_and_null_take_the_defaults() {
    let nulls = with(&json!({
        "toolId": null, "description": null, "category": null, "tags": null, "params": null, "staticVariables": null,
        "sandboxOverrides": null, "toolSafety": null, "humanInTheLoop": null, "draft": null,
        "createTimestamp": null, "updateTimestamp": null, "x-toolgate-capability": null,
    }));
    let spec = spec_of(&sound());
    assert_eq!(spec, spec_of(&nulls));
    assert_eq!(spec.draft, None);
    assert_eq!(spec.approval.mode, ApprovalMode::Unstated);
    assert_eq!(spec.overrides, crate::model::SandboxOverrides::default());
    assert_eq!(spec.body, Body::JavaScript { code: "return 1".into() });
}

#[test]
fn false_and_absent_are_distinct() {
    let spec = spec_of(&with(
        &json!({ "sandboxOverrides": { "fileRead": false, "fileWrite": null, "networkMode": "open" } }),
    ));
    assert_eq!((spec.overrides.file_read, spec.overrides.file_write), (Some(false), None));
    assert_eq!(spec.overrides.network_mode, Some(NetworkMode::Open));
}

#[test]
fn static_variables_keep_order_and_the_last_wins() {
    let spec =
        spec_of(&with(&json!({ "staticVariables": [{ "a": "1" }, { "b": "${B} ${A}" }, { "a": "${A}" }] })));
    let seen: Vec<_> =
        spec.effective_statics().iter().map(|one| (one.name.as_str(), one.value.text())).collect();
    assert_eq!(seen, [("b", "${B} ${A}"), ("a", "${A}")]);
    assert_eq!(spec.statics.len(), 3);
    assert_eq!(spec.required_environment(), ["B", "A"]);
}

#[test]
fn test_values_parse_into_their_types() {
    let param = |kind: &str, value: &str| json!({ "params": [{ "name": "p", "required": true, "type": kind, "testValue": value }] });
    for (kind, good, bad) in [
        ("INTEGER", "-42", "4.2"),
        ("INTEGER", "0", "12a"),
        ("NUMBER", "2.5e3", "2,5"),
        ("NUMBER", "1", "NaN"),
        ("BOOLEAN", "false", "no"),
        ("BOOLEAN", "true", "TRUE"),
        ("OBJECT", "{\"a\": [1]}", "[1]"),
        ("ARRAY", "[]", "a, b"),
    ] {
        check_errors(&param(kind, good), &[]);
        check_errors(&param(kind, bad), &["SPEC_INVARIANT /params/0/testValue"]);
    }
    check_errors(&param("STRING", ""), &[]);
    check_errors(
        &json!({ "params": [{ "name": "p", "required": true, "type": "STRING" }] }),
        &["SPEC_PARSE /params/0"],
    );
    check_errors(
        &json!({ "params": [{ "name": "p", "required": true, "type": "STRING", "testValue": null }] }),
        &["SPEC_PARSE /params/0/testValue"],
    );
    check_errors(&json!({ "params": [{ "name": "p", "required": false, "type": "INTEGER" }] }), &[]);
}

/// Each of these keys was once accepted and had no effect.
#[test]
fn guards_without_prefix_are_rejected() {
    for (key, value) in [
        ("permissions", json!({ "required": ["admin"] })),
        ("capability", json!({ "approval": { "level": "always" } })),
        ("classification", json!("destructive")),
        ("profile", json!("offline")),
        ("output", json!({ "type": "object" })),
        ("outputPolicy", json!({ ".ssn": "redact" })),
        ("piiFields", json!(["..email"])),
        ("touches", json!({ "read": [".path"] })),
        ("input", json!({ "type": "object" })),
        ("testInput", json!({})),
        ("policy", json!({ "approval": "always" })),
        ("x-Toolgate-permissions", json!({ "required": ["admin"] })),
        ("X-TOOLGATE-CAPABILITY", json!({ "approval": { "level": "always" } })),
        ("x_toolgate_outputPolicy", json!({ ".ssn": "redact" })),
        ("xToolgateTouches", json!({ "read": [".path"] })),
        ("HumanInTheLoop", json!({ "mode": "REQUIRED" })),
        ("sandboxoverrides", json!({ "destructive": true })),
        ("approval", json!({ "level": "always" })),
        ("toolgate-approval", json!("always")),
        ("toolgate", json!({ "approval": "always" })),
        ("capabilities", json!({ "approval": { "level": "always" } })),
        ("destructive", json!(true)),
        ("dangerPatterns", json!(["rm"])),
        ("blockedPaths", json!(["/etc"])),
        ("networkMode", json!("blocked")),
        ("humanInLoop", json!({ "mode": "REQUIRED" })),
        ("requiresApproval", json!(true)),
        ("network", json!({ "allowedHosts": [] })),
        ("permission", json!({ "required": ["admin"] })),
        ("classificaton", json!("destructive")),
    ] {
        check_errors(&json!({ key: value }), &[&format!("SPEC_INVARIANT /{key}")]);
    }
    check_errors(&json!({ "x-owner": "ann", "icon": "sum.svg" }), &[]);
}

#[test]
fn guards_at_bundle_level_are_rejected() {
    for key in ["humanInTheLoop", "permissions", "x-toolgate-capability", "approval", "sandboxOverrides"] {
        let bundle = json!({ "toolSpecs": [sound()], key: { "mode": "REQUIRED" } });
        assert_eq!(errors(&bundle), [format!("SPEC_INVARIANT /{key}")]);
    }
    let vendor = json!({ "toolSpecs": [sound()], "version": 1, "name": "mine", "exportedAt": "now", "x-owner": "ann" });
    assert_eq!(errors(&vendor), [""; 0]);
}

#[test]
fn names_are_bindable_and_unique() {
    let param = |name: &str| json!({ "name": name, "required": false, "type": "STRING" });
    check_errors(
        &json!({ "params": [param("a"), param("b"), param("a")] }),
        &["SPEC_INVARIANT /params/2/name"],
    );
    check_errors(
        &json!({ "params": [param("a; process.exit()"), param("class")] }),
        &["SPEC_INVARIANT /params/0/name", "SPEC_INVARIANT /params/1/name"],
    );
    check_errors(&json!({ "staticVariables": [{ "a-b": "1" }] }), &["SPEC_INVARIANT /staticVariables/0"]);
}

#[test]
fn all_findings_are_reported() {
    check_errors(
        &json!({
            "staticVariables": [{ "key": "${lower}" }],
            "sandboxOverrides": { "hostsAllow": ["ok.example.com", "http://x"], "fsBasePath": "~/x", "filewrite": true },
            "toolSafety": { "runtime": { "helpers": ["safety.fs/v1", "FS"] } },
            "tags": ["a", "b", "c"],
            "humanInTheLoop": { "mod": "REQUIRED" },
            "x-toolgate-capabilty": {},
        }),
        &[
            "SPEC_INVARIANT /sandboxOverrides/fsBasePath",
            "SPEC_INVARIANT /sandboxOverrides/hostsAllow/1",
            "SPEC_INVARIANT /staticVariables/0/key",
            "SPEC_INVARIANT /toolSafety/runtime/helpers/1",
            "SPEC_INVARIANT /x-toolgate-capabilty",
            "SPEC_PARSE /humanInTheLoop/mod",
            "SPEC_PARSE /sandboxOverrides/filewrite",
            "SPEC_PARSE /tags",
        ],
    );
}

#[test]
fn unknown_top_level_fields_are_accepted() {
    check_errors(&json!({ "x-vendor": { "deep": [1, null] }, "future": true, "toolSafty": {} }), &[]);
}

#[test]
fn imprecise_numbers_are_rejected_in_known_fields() {
    check_errors(
        &json!({ "createTimestamp": 9_007_199_254_740_993_u64 }),
        &["SPEC_INVARIANT /createTimestamp"],
    );
    check_errors(&json!({ "x-vendor": 9_007_199_254_740_993_u64 }), &[]);
}

#[test]
fn a_document_is_an_object_with_one_body() {
    for text in ["[]", "1", "\"x\"", "null"] {
        assert_eq!(check_text(text, Format::Json).kind, FileKind::Unreadable, "{text}");
    }
    let both = with(&json!({ "handler": { "cli": { "command": "true" } } }));
    assert!(errors(&both).contains(&"SPEC_INVARIANT /code".to_owned()));
    assert_eq!(errors(&json!({})), ["SPEC_PARSE ", "SPEC_PARSE ", "SPEC_PARSE "]);
}

#[test]
fn bundles_point_into_their_tools() {
    let broken = with(&json!({ "name": "b", "draft": 1 }));
    let bundle =
        json!({ "toolSpecs": [sound(), broken, sound(), 7], "toolMcpServerSetting": { "autoAdd": "yes" } });
    assert_eq!(
        errors(&bundle),
        [
            "SPEC_INVARIANT /toolSpecs/2",
            "SPEC_PARSE /toolMcpServerSetting/autoAdd",
            "SPEC_PARSE /toolSpecs/1/draft",
            "SPEC_PARSE /toolSpecs/3",
        ]
    );
    let file = check_text(&bundle.to_string(), Format::Json);
    assert_eq!(file.kind, FileKind::Bundle);
    let sound: Vec<bool> = file.tools.iter().map(|tool| tool.spec.is_some()).collect();
    assert_eq!(sound, [true, false, false]);
}

#[test]
fn array_of_tools_is_checked_like_a_bundle() {
    let broken = with(&json!({ "name": "b", "draft": 1 }));
    let array = json!([sound(), broken, 7]);
    assert_eq!(errors(&array), ["SPEC_PARSE /1/draft", "SPEC_PARSE /2"]);
    assert_eq!(check_text(&array.to_string(), Format::Json).kind, FileKind::Bundle);
    let yaml = "- name: t\n  code: '1'\n  codeType: Javascript\n";
    assert_eq!(check_text(yaml, Format::Yaml).tools.len(), 1);
    for data in [json!([]), json!([1, 2]), json!([{ "name": "x" }])] {
        assert_eq!(check_text(&data.to_string(), Format::Json).kind, FileKind::Unreadable, "{data}");
    }
    let many: Vec<Value> = (0..3)
        .map(|index| {
            with(&json!({ "name": format!("t{index}"), "x-pad": "a".repeat(MAX_DOCUMENT_BYTES / 2) }))
        })
        .collect();
    assert_eq!(check_text(&json!(many).to_string(), Format::Json).tools.len(), 3);
}

#[test]
fn excess_findings_are_dropped_and_counted() {
    let params: Vec<Value> = (0..5_000).map(|_| json!({ "nme": 1 })).collect();
    let file = check_text(&with(&json!({ "params": params })).to_string(), Format::Json);
    let findings = &file.tools[0].findings;
    assert_eq!(findings.len(), MAX_FINDINGS + 1);
    assert!(findings.last().unwrap().message.contains("the rest is omitted"));
    let bundle = json!({ "toolSpecs": vec![json!({}); 50_000] });
    let file = check_text(&bundle.to_string(), Format::Json);
    assert!(file.findings.iter().any(|finding| finding.message.contains("tools were not checked")));
    assert!(file.tools.len() < 10_000);
}

#[test]
fn findings_are_located_in_both_formats() {
    let json =
        "{\n  \"name\": \"t\",\n  \"code\": \"1\",\n  \"codeType\": \"Javascript\",\n  \"draft\": 7\n}";
    let yaml = "name: t\ncode: '1'\ncodeType: Javascript\ndraft: 7\n";
    for (text, format, expect) in [(json, Format::Json, (5, 12)), (yaml, Format::Yaml, (4, 8))] {
        let mut findings: Vec<Finding> = check_text(text, format).tools.remove(0).findings;
        findings.retain(Finding::is_error);
        locate(text, format, &mut findings);
        let position = LineIndex::new(text).position(findings[0].span.unwrap().start);
        assert_eq!((position.line, position.column), expect);
    }
}

#[test]
fn mentioning_tool_specs_does_not_raise_the_size_limit() {
    let huge = "a".repeat(MAX_DOCUMENT_BYTES);
    let alone = with(&json!({ "x-note": "toolSpecs", "x-pad": huge }));
    assert_eq!(check_text(&alone.to_string(), Format::Json).kind, FileKind::Unreadable);
    let bundle = json!({ "toolSpecs": [sound(), with(&json!({ "name": "u", "x-pad": huge }))] });
    let file = check_text(&bundle.to_string(), Format::Json);
    assert_eq!(file.tools.len(), 1);
    let said: Vec<_> = file.findings.iter().map(|finding| (finding.at.as_str(), &finding.message)).collect();
    assert!(
        matches!(&said[..], [("/toolSpecs/1", message)] if message.contains("the limit for a tool")),
        "{said:?}"
    );
}

/// Checks that compare entries with each other do not run on lists beyond the limits of the schema.
#[test]
fn oversized_lists_are_reported_once() {
    let params: Vec<Value> = (0..6_000)
        .map(|number| json!({ "name": format!("a{number}"), "required": false, "type": "STRING" }))
        .collect();
    let variables: Vec<Value> = (0..6_000).map(|number| json!({ format!("b{number}"): "${bad}" })).collect();
    let permissions: Vec<String> = (0..6_000).map(|number| format!("a:b{number}")).collect();
    check_errors(&json!({ "params": params, "draft": 1 }), &["SPEC_PARSE /draft", "SPEC_PARSE /params"]);
    let said = errors(&with(&json!({ "params": params, "staticVariables": variables })));
    assert!(said.contains(&"SPEC_PARSE /staticVariables".to_owned()));
    check_errors(
        &json!({ "x-toolgate-permissions": { "required": permissions } }),
        &["SPEC_PARSE /x-toolgate-permissions/required"],
    );
    let args: Vec<String> = (0..20_000).map(|number| format!("{{a{number}}}")).collect();
    let manifest = json!({
        "name": "t", "classification": "read", "params": params, "handler": { "cli": { "command": "true", "args": args } },
    });
    assert_eq!(errors(&manifest), ["SPEC_PARSE /handler/cli/args", "SPEC_PARSE /params"]);
}

#[test]
fn bundle_setting_controls_exposed_tools() {
    let id = |n: u8| format!("00000000-0000-4000-8000-00000000000{n}");
    let tools = [1, 2, 3].map(|n| {
        let mut tool = sound();
        tool["name"] = json!(format!("tool{n}"));
        tool["toolId"] = json!(id(n));
        tool
    });
    for (setting, expect) in [
        (json!(null), [None, None, None]),
        (json!({ "autoAdd": true, "excludedToolIds": [id(2).to_uppercase()] }), [None, Some(false), None]),
        (
            json!({ "autoAdd": false, "exposedToolIds": [id(1), id(3)], "excludedToolIds": [id(3)] }),
            [None, Some(false), Some(false)],
        ),
    ] {
        let bundle = json!({ "toolSpecs": tools, "toolMcpServerSetting": setting });
        let file = check_text(&bundle.to_string(), Format::Json);
        let exposed: Vec<_> =
            file.tools.iter().map(|tool| tool.spec.as_ref().unwrap().governance.exposed).collect();
        assert_eq!(exposed, expect, "{setting}");
    }
    let mut own = sound();
    own["x-toolgate-exposed"] = json!(true);
    let bundle = json!({ "toolSpecs": [own], "toolMcpServerSetting": { "autoAdd": false } });
    let file = check_text(&bundle.to_string(), Format::Json);
    assert_eq!(file.tools[0].spec.as_ref().unwrap().governance.exposed, Some(true));
}

#[test]
fn unknown_tool_safety_version_is_rejected() {
    for (version, is_known) in [("1.0", true), ("1.3", true), ("2.0", false), ("10", false), ("", false)] {
        let mut tool = sound();
        tool["toolSafety"] = json!({ "version": version });
        let file = check_text(&tool.to_string(), Format::Json);
        assert_eq!(file.tools[0].spec.is_some(), is_known, "{version}: {:?}", file.tools[0].findings);
    }
}

#[test]
fn test_values_may_be_typed_values() {
    for (kind, value, is_sound) in [
        ("NUMBER", json!(10), true),
        ("NUMBER", json!("10"), true),
        ("INTEGER", json!(10), true),
        ("INTEGER", json!(1.5), false),
        ("BOOLEAN", json!(true), true),
        ("ARRAY", json!([1, 2]), true),
        ("OBJECT", json!({ "a": 1 }), true),
        ("OBJECT", json!(7), false),
        ("STRING", json!(10), false),
        ("NUMBER", json!(null), false),
    ] {
        let mut tool = sound();
        tool["params"] =
            json!([{ "name": "x", "type": kind, "required": true, "description": "d", "testValue": value }]);
        let file = check_text(&tool.to_string(), Format::Json);
        assert_eq!(file.tools[0].spec.is_some(), is_sound, "{kind} {value}: {:?}", file.tools[0].findings);
    }
}

#[test]
fn rust_handler_is_rejected_in_files() {
    let document = json!({
        "name": "count", "description": "Counts words. Returns their number.", "classification": "read",
        "input": { "type": "object", "properties": { "text": { "type": "string" } } },
        "testInput": { "text": "one" },
    });
    let Value::Object(mut document) = document else { panic!("an object") };
    let in_code = check_in_code(document.clone());
    assert!(in_code.spec.is_some(), "{:?}", in_code.findings);
    // All other rules apply.
    let mut broken = document.clone();
    broken.remove("classification");
    assert!(check_in_code(broken).spec.is_none());

    document.insert("handler".to_owned(), json!({ "rust": {} }));
    let file = check_text(&Value::Object(document).to_string(), Format::Json);
    let [tool] = file.tools.as_slice() else { panic!("one tool") };
    assert!(tool.spec.is_none());
    let errors = tool.findings.iter().filter(|finding| finding.is_error());
    assert!(errors.clone().all(|finding| finding.at.as_str().starts_with("/handler")), "{:?}", tool.findings);
    assert!(errors.count() > 0);
}
