//! Projections contain the interface of a tool and nothing else.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails loudly")]

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_spec::{
    CompiledSchema, Finding, Format, check_text,
    model::ToolSpec,
    project::{WireTarget, project, wire_name},
};

#[track_caller]
fn spec_of(document: &Value) -> ToolSpec {
    let file = check_text(&document.to_string(), Format::Json);
    let tool = file.tools.into_iter().next().expect("a tool");
    tool.spec.unwrap_or_else(|| panic!("unsound: {:?}", tool.findings))
}

/// The projection, or the error message.
#[track_caller]
fn projected(document: &Value, target: WireTarget) -> Value {
    project(&spec_of(document), target).unwrap_or_else(|error| error.to_string().into())
}

/// Compares the order of members too, because models read it.
#[track_caller]
fn check(document: &Value, target: WireTarget, expect: &Value) {
    assert_eq!(projected(document, target).to_string(), expect.to_string());
}

fn tool(params: &Value) -> Value {
    json!({ "name": "t", "description": "Does it", "code": "return 1", "codeType": "Javascript", "params": params })
}

/// Projects an input schema, including schemas that `check` would reject.
fn input_of(input: &Value, target: WireTarget) -> Value {
    let document =
        json!({ "name": "t", "classification": "read", "handler": { "cli": { "command": "true" } } });
    let mut spec = spec_of(&document);
    spec.governance.input = Some(input.clone());
    let shown = project(&spec, target).unwrap_or_else(|error| error.to_string().into());
    let key = match target {
        WireTarget::Mcp => "/inputSchema",
        WireTarget::OpenAi => "/function/parameters",
        WireTarget::Anthropic => "/input_schema",
        WireTarget::Google => "/parameters",
    };
    shown.pointer(key).cloned().unwrap_or(shown)
}

#[test]
fn every_kind_of_parameter_in_declared_order() {
    let document = tool(&json!([
        { "name": "z", "type": "STRING", "required": true, "description": "Zed", "testValue": "x" },
        { "name": "i", "type": "INTEGER", "required": false, "description": "  " },
        { "name": "n", "type": "NUMBER", "required": false },
        { "name": "b", "type": "BOOLEAN", "required": true, "testValue": "true" },
        { "name": "o", "type": "OBJECT", "required": false },
        { "name": "a", "type": "ARRAY", "required": false },
    ]));
    let schema = json!({
        "type": "object",
        "properties": {
            "z": { "type": "string", "description": "Zed" }, "i": { "type": "integer" }, "n": { "type": "number" },
            "b": { "type": "boolean" }, "o": { "type": "object", "additionalProperties": true },
            "a": { "type": "array", "items": {} },
        },
        "required": ["z", "b"],
        "additionalProperties": false,
    });
    check(
        &document,
        WireTarget::Mcp,
        &json!({ "name": "t", "description": "Does it", "inputSchema": schema }),
    );
    check(
        &document,
        WireTarget::OpenAi,
        &json!({ "type": "function", "function": { "name": "t", "description": "Does it", "parameters": schema } }),
    );
    check(
        &document,
        WireTarget::Anthropic,
        &json!({ "name": "t", "description": "Does it", "input_schema": schema }),
    );
    check(
        &document,
        WireTarget::Google,
        &json!({ "name": "t", "description": "Does it", "parameters": {
            "type": "object",
            "properties": {
                "z": { "type": "string", "description": "Zed" }, "i": { "type": "integer" }, "n": { "type": "number" },
                "b": { "type": "boolean" }, "o": { "type": "object" },
                "a": { "type": "array", "items": { "type": "string" } },
            },
            "required": ["z", "b"],
        }}),
    );
}

#[test]
fn tool_without_parameters_and_description() {
    let document = json!({ "name": "t", "description": " ", "code": "return 1", "codeType": "Javascript" });
    let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    check(&document, WireTarget::Mcp, &json!({ "name": "t", "inputSchema": schema }));
    check(
        &document,
        WireTarget::OpenAi,
        &json!({ "type": "function", "function": { "name": "t", "parameters": schema } }),
    );
    check(&document, WireTarget::Anthropic, &json!({ "name": "t", "input_schema": schema }));
    check(&document, WireTarget::Google, &json!({ "name": "t", "description": "t" }));
}

#[test]
fn references_are_expanded_and_remarks_removed() {
    let input = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/x", "$comment": "private",
        "properties": {
            "$defs": { "type": "string", "examples": ["x"], "default": "kept" },
            "who": { "$ref": "#/$defs/person", "description": "The one" },
            "both": { "$ref": "#/$defs/name", "minLength": 2 },
            "x-note": { "enum": [{ "$comment": "data" }] },
        },
        "required": [],
        "x-internal": true,
        "$defs": {
            "person": { "type": "object", "description": "Anyone", "properties": { "name": { "$ref": "#/$defs/name" } } },
            "name": { "type": "string", "$comment": "private" },
        },
    });
    let expect = json!({
        "type": "object",
        "properties": {
            "$defs": { "type": "string", "default": "kept" },
            "who": { "type": "object", "description": "The one", "properties": { "name": { "type": "string" } } },
            "both": { "minLength": 2, "allOf": [{ "type": "string" }] },
            "x-note": { "enum": [{ "$comment": "data" }] },
        },
        "additionalProperties": false,
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            "person": { "type": "object", "description": "Anyone", "properties": { "name": { "type": "string" } } },
            "name": { "type": "string" },
        },
    });
    assert_eq!(input_of(&input, WireTarget::Mcp).to_string(), expect.to_string());
    assert_eq!(
        input_of(&input, WireTarget::Google),
        "`input/properties/both`: Google's function declarations do not support `allOf`"
    );
    assert_eq!(
        input_of(&input, WireTarget::Anthropic),
        "`input/properties/$defs`: a name here has at most 64 letters, digits, `_`, `.` and `-`"
    );
}

#[test]
fn unsupported_schemas_are_rejected_with_a_reason() {
    for (input, why) in [
        (
            json!({ "oneOf": [{}] }),
            "`input/oneOf`: function calling does not support `oneOf` at the top of a schema",
        ),
        (
            json!({ "$ref": "#/$defs/a", "required": ["x"], "$defs": { "a": {} } }),
            "`input/allOf`: function calling does not support `allOf` at the top of a schema",
        ),
        (json!({ "type": "string" }), "`input/type`: `\"string\"` where \"object\" is needed"),
        (
            json!({ "properties": { "a": { "$ref": "#/$defs/t" } }, "$defs": { "t": { "properties": { "t": { "$ref": "#/$defs/t" } } } } }),
            "`input/$defs/t/properties/t/$ref`: `#/$defs/t` contains itself",
        ),
        (json!({ "properties": { "a": { "$ref": "#" } } }), "`input/properties/a/$ref`: `#` contains itself"),
    ] {
        assert_eq!(input_of(&input, WireTarget::OpenAi), why);
    }
    let deep = (0..40).fold(json!({}), |inner, _| json!({ "items": inner }));
    let shown = input_of(&json!({ "properties": { "a": deep } }), WireTarget::OpenAi).to_string();
    assert!(shown.contains("nested deeper than 32 levels"), "{shown}");
}

/// From the example of a 2020-12 schema in the MCP specification.
#[test]
fn keywords_of_2020_12_survive_in_the_mcp_listing() {
    let input = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef", "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
            "unused": { "description": "for authors" },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" }, "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "anyOf": [{ "required": ["name"] }, { "required": ["address"] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    });
    let listed = input_of(&input, WireTarget::Mcp);
    for keyword in ["$schema", "allOf", "anyOf", "if", "then", "else", "additionalProperties"] {
        assert_eq!(listed[keyword], input[keyword], "{keyword}");
    }
    let address = &input["$defs"]["address"];
    assert_eq!(
        listed["$defs"],
        json!({ "address": address }),
        "as written, without the one that nothing refers to"
    );
    let copy = json!({ "type": "object", "properties": address["properties"] });
    assert_eq!(listed["properties"]["address"], copy, "an anchor occurs once");
    let document = json!({
        "name": "t", "description": "d", "classification": "read", "input": input,
        "testInput": { "name": "Ann", "email": "a@example.com" },
        "handler": { "http": { "method": "POST", "url": "https://a.org", "body": {
            "n": "{name}", "a": "{address}", "c": "{contactMethod}", "p": "{phone}", "e": "{email}",
        } } },
    });
    let errors: Vec<String> = check_text(&document.to_string(), Format::Json)
        .tools
        .into_iter()
        .flat_map(|tool| tool.findings)
        .filter(Finding::is_error)
        .map(|finding| format!("{} {}", finding.at, finding.message))
        .collect();
    assert_eq!(errors, Vec::<String>::new(), "and such a document is accepted");
}

#[test]
fn schema_expansion_is_bounded() {
    let mut definitions = serde_json::Map::new();
    definitions.insert("d0".into(), json!({ "type": "string", "description": "x".repeat(100) }));
    for level in 1..16 {
        let below = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
        definitions.insert(
            format!("d{level}"),
            json!({ "type": "object", "properties": { "a": below, "b": below } }),
        );
    }
    let bomb = json!({ "properties": { "a": { "$ref": "#/$defs/d12" } }, "$defs": definitions });
    let shown = input_of(&bomb, WireTarget::Mcp).to_string();
    assert!(shown.contains("more than 65536 bytes"), "{shown}");
}

#[test]
fn google_projection_uses_its_dialect() {
    let input = json!({
        "properties": {
            "maybe": { "type": ["string", "null"], "title": "x", "format": "uuid", "minLength": 1 },
            "either": { "type": ["string", "integer"], "minimum": 1, "description": "d" },
            "one": { "oneOf": [{ "type": "string" }, { "type": "object", "additionalProperties": false }] },
            "choice": { "enum": ["a", "b"] }, "fixed": { "const": "c" }, "number": { "type": "integer", "enum": [1, 2], "format": "int32", "multipleOf": 2 },
            "any": true, "list": { "type": "array", "uniqueItems": true, "maxItems": 3 },
            "when": { "type": "string", "format": "date-time", "pattern": "^2" },
        },
        "required": ["maybe", "gone"],
        "additionalProperties": true, "dependentRequired": { "a": ["b"] },
    });
    let expect = json!({
        "type": "object",
        "properties": {
            "maybe": { "type": "string", "minLength": 1, "nullable": true },
            "either": { "description": "d", "anyOf": [{ "type": "string" }, { "type": "integer", "minimum": 1 }] },
            "one": { "anyOf": [{ "type": "string" }, { "type": "object" }] },
            "choice": { "type": "string", "format": "enum", "enum": ["a", "b"] },
            "fixed": { "type": "string", "format": "enum", "enum": ["c"] },
            "number": { "type": "integer", "format": "int32" },
            "any": { "type": "string" },
            "list": { "type": "array", "items": { "type": "string" }, "maxItems": 3 },
            "when": { "type": "string", "pattern": "^2", "format": "date-time" },
        },
        "required": ["maybe"],
    });
    assert_eq!(input_of(&input, WireTarget::Google).to_string(), expect.to_string());
}

#[test]
fn output_schema_is_listed_only_if_reliable() {
    let with = |key: &str, value: Value| {
        let mut document = tool(&json!([]));
        document["x-toolgate-output"] =
            json!({ "type": "object", "properties": { "a": { "type": "string", "x-pii": true } } });
        document[key] = value;
        projected(&document, WireTarget::Mcp).get("outputSchema").cloned()
    };
    assert_eq!(
        with("x-a", json!(1)),
        Some(json!({ "type": "object", "properties": { "a": { "type": "string" } } }))
    );
    assert_eq!(with("x-toolgate-outputPolicy", json!({ "a": "redact" })), None);
}

#[test]
fn names_stay_unchanged_if_allowed() {
    for (name, mcp, openai, google) in [
        ("get_weather-2", "get_weather-2", "get_weather-2", "get_weather-2"),
        ("files.read", "files.read", "files_read_601e4eb6", "files.read"),
        ("7zip", "7zip", "7zip", "_7zip_98fa304e"),
        ("날씨 today", "날씨 today", "___today_ae58cd5c", "___today_ae58cd5c"),
        ("a\u{1b}[0m", "a__0m_ddce9a9f", "a__0m_ddce9a9f", "a__0m_ddce9a9f"),
    ] {
        assert_eq!(wire_name(name, WireTarget::Mcp), mcp);
        assert_eq!(wire_name(name, WireTarget::OpenAi), openai);
        assert_eq!(wire_name(name, WireTarget::Anthropic), openai);
        assert_eq!(wire_name(name, WireTarget::Google), google);
    }
    let (one, other) = (format!("{}a", "n".repeat(64)), format!("{}b", "n".repeat(64)));
    assert_ne!(wire_name(&one, WireTarget::OpenAi), wire_name(&other, WireTarget::OpenAi));
}

#[test]
fn projection_contains_only_the_interface() {
    for (document, canaries) in [(leaky_spec(), 30), (leaky_manifest(), 20)] {
        let text = document.to_string();
        assert!(text.matches(CANARY).count() >= canaries, "the canaries are in place");
        let spec = spec_of(&document);
        for target in WireTarget::ALL {
            let shown = project(&spec, target).expect("a projection").to_string();
            assert!(!shown.contains(CANARY), "{}: {shown}", target.name());
            assert!(!shown.contains("17000000001"), "timestamps: {shown}");
            assert!(shown.contains("tell-me"), "{shown}");
        }
    }
}

fn leaky_spec() -> Value {
    json!({
        "toolId": "CANARY-id", "name": "tell-me", "description": "tell-me more", "category": "CANARY", "tags": ["CANARY-1", "CANARY-2"],
        "params": [
            { "name": "a", "description": "tell-me a", "required": true, "type": "STRING", "testValue": "CANARY" },
            { "name": "b", "required": false, "type": "ARRAY", "testValue": "[\"CANARY\"]" },
        ],
        "staticVariables": [{ "CANARY_KEY": "CANARY-value ${CANARY_ENV}" }],
        "code": "return 'CANARY'", "codeType": "Javascript",
        "sandboxOverrides": {
            "addAllowClasses": ["CANARY.A"], "removeAllowClasses": ["CANARY.B"], "addDenyClasses": ["CANARY.C"],
            "removeDenyClasses": ["CANARY.D"], "networkMode": "allowlist", "hostsAllow": ["CANARY.example.com"],
            "fileRead": true, "fileWrite": true, "fsBasePath": "/CANARY", "destructive": true,
        },
        "toolSafety": {
            "version": "1.CANARY", "runtime": { "id": "CANARY", "minVersion": "CANARY", "ecmaVersion": "CANARY" },
            "category": { "source": "CANARY", "id": "CANARY" }, "capabilities": { "network": { "hosts": ["CANARY"] } },
        },
        "humanInTheLoop": { "mode": "REQUIRED", "promptTemplate": "CANARY", "x-CANARY": "CANARY" },
        "draft": true, "createTimestamp": 17_000_000_001_i64, "updateTimestamp": 17_000_000_001_i64,
        "x-toolgate-profile": "CANARY",
        "x-toolgate-permissions": { "required": ["CANARY"], "elevated": [{ "when": { "const": "CANARY" }, "require": ["CANARY"] }] },
        "x-toolgate-outputPolicy": { ".CANARY": "redact" }, "x-toolgate-piiFields": [".CANARY"],
        "x-toolgate-output": { "type": "object", "$comment": "CANARY" },
        "x-toolgate-capability": {
            "approval": { "dangerPatterns": ["CANARY"] }, "network": { "access": "limited", "allowedHosts": ["CANARY.example.com"] },
            "execution": { "allowedPaths": ["/CANARY"] }, "audit": { "alertOn": ["CANARY"] },
        },
        "x-vendor": { "CANARY": "CANARY" }, "CANARY": "CANARY",
    })
}

fn leaky_manifest() -> Value {
    json!({
        "toolId": "CANARY-id", "name": "tell-me", "description": "tell-me more", "category": "CANARY", "tags": ["CANARY"],
        "classification": "write", "profile": "CANARY", "permissions": { "required": ["CANARY"] },
        "input": {
            "type": "object", "required": ["a"],
            "properties": { "a": { "type": "string", "examples": ["CANARY"], "x-CANARY": 1 } }, "$comment": "CANARY",
            "$defs": { "CANARY": { "description": "CANARY" } },
        },
        "testInput": { "a": "CANARY" }, "output": { "type": "object", "examples": ["CANARY"] },
        "outputPolicy": { ".CANARY": "mask" }, "piiFields": [".CANARY"],
        "staticVariables": [{ "CANARY_KEY": "${CANARY_ENV}" }],
        "capability": { "audit": { "redactPatterns": ["CANARY"] }, "execution": { "env": "explicit", "allowedEnvVars": ["CANARY"] } },
        "humanInTheLoop": { "mode": "REQUIRED", "promptTemplate": "CANARY" },
        "handler": { "http": {
            "url": "https://example.com/CANARY", "method": "POST", "headers": { "x-CANARY": "CANARY {CANARY_KEY}" },
            "query": { "CANARY": "CANARY" }, "body": { "CANARY": "CANARY {a}" },
        }},
        "x-vendor": "CANARY",
    })
}

proptest! {
    /// For every name, the result is in the alphabet, short enough and deterministic.
    #[test]
    fn wire_names_are_valid(name in "\\PC{1,80}") {
        let good = |name: &str| (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        for target in [WireTarget::OpenAi, WireTarget::Anthropic] {
            prop_assert!(good(&wire_name(&name, target)));
        }
        let google = wire_name(&name, WireTarget::Google);
        prop_assert!(good(&google.replace('.', "_")) && !google.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.'));
        for target in WireTarget::ALL {
            prop_assert_eq!(wire_name(&name, target), wire_name(&name, target));
            let again = wire_name(&name, target).into_owned();
            prop_assert_eq!(wire_name(&again, target).into_owned(), again);
        }
    }

    /// The result is a valid, closed schema.
    #[test]
    fn projected_input_is_a_closed_schema(names in proptest::collection::btree_set("[a-z]{1,5}x", 0..6), required in any::<bool>()) {
        let params: Vec<Value> = names.iter().map(|name| json!({ "name": name, "type": "STRING", "required": required, "testValue": "x" })).collect();
        let document = tool(&json!(params));
        let schema = projected(&document, WireTarget::Mcp)["inputSchema"].clone();
        let validator = CompiledSchema::new(&schema).expect("a schema");
        let all: Value = names.iter().map(|name| (name.clone(), json!("v"))).collect::<serde_json::Map<_, _>>().into();
        prop_assert!(validator.accepts(&all));
        let unknown = json!({ "UNKNOWN": 1 });
        prop_assert!(!validator.accepts(&unknown));
        prop_assert_eq!(validator.accepts(&json!({})), !required || names.is_empty());
    }
}

const CANARY: &str = "CANARY";
