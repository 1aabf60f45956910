mod context;
mod decisions;
mod loading;
mod samples;

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::*;
use crate::{PolicySet as Profiles, rate, resolve, testing};

/// A few tools of every kind. `write_file` is `write`, `wipe_disk` destructive, all others read.
fn tools() -> Vec<SampleTool> {
    vec![
        known(
            "read_file",
            "classification: read, category: files, tags: [files, local]",
            &json!({"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
                "path": {"type": "string"},
                "lines": {"type": "integer"},
                "mode": {"enum": ["text", "binary"]},
            }}),
        ),
        SampleTool {
            level: RiskLevel::L4,
            ..known(
                "write_file",
                "classification: write, category: files, tags: [files]",
                &json!({"type": "object", "additionalProperties": false, "required": ["path", "content"], "properties": {
                    "path": {"type": "string"},
                    "content": {"type": "string"},
                    "labels": {"type": "array", "items": {"type": "string"}},
                }}),
            )
        },
        known(
            "pay",
            "classification: read",
            &json!({"type": "object", "additionalProperties": false, "required": ["amount", "to"], "properties": {
                "amount": {"type": "number"},
                "count": {"type": "integer"},
                "urgent": {"type": ["boolean", "null"]},
                "to": {"type": "object", "required": ["iban"], "properties": {
                    "iban": {"type": "string"}, "name": {"type": "string"}, "extra": {},
                }},
                "anything": {},
                "pair": {"type": "array", "prefixItems": [{"type": "string"}]},
            }}),
        ),
        known(
            "wipe_disk",
            "classification: destructive",
            &json!({"type": "object", "additionalProperties": false, "properties": {}}),
        ),
    ]
}

struct SampleTool {
    name: String,
    spec: ToolSpec,
    schema: Value,
    level: RiskLevel,
    policy: EffectivePolicy,
}

impl SampleTool {
    fn tool(&self) -> CedarTool<'_> {
        CedarTool {
            name: &self.name,
            spec: &self.spec,
            input_schema: &self.schema,
            level: self.level,
            policy: &self.policy,
        }
    }
}

/// The schema comes separately, as from `toolgate_spec::project::input_schema`: the document need not use each argument.
#[track_caller]
fn known(name: &str, more: &str, schema: &Value) -> SampleTool {
    let document =
        testing::manifest("cli: {command: date}", more).replacen("name: t", &format!("name: {name}"), 1);
    let spec = testing::spec(&document);
    let set = Profiles::shipped().unwrap();
    let policy = resolve(&spec, &set, None).unwrap();
    let level = rate(&policy, &spec, &set).level;
    SampleTool { name: name.to_owned(), schema: schema.clone(), spec, level, policy }
}

fn load_for(tools: &[SampleTool], text: &str) -> Result<CedarPolicies, Vec<CedarError>> {
    CedarPolicies::new(&[("rules.cedar".to_owned(), text.to_owned())], tools.iter().map(SampleTool::tool))
}

#[track_caller]
fn loaded(text: &str) -> CedarPolicies {
    load_for(&tools(), text).unwrap_or_else(|errors| panic!("{}\n{text}", shown(&errors)))
}

fn shown(errors: &[CedarError]) -> String {
    let mut shown = String::new();
    for error in errors {
        writeln!(shown, "{error}").unwrap();
    }
    shown
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

fn alice() -> Caller {
    Caller::new("alice", ["files.read"])
}

const ALL: &str = "permit(principal, action in Action::\"call\", resource);";
