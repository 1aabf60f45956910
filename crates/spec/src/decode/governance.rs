//! Decodes the blocks that a manifest has under their own names and a Safe Tool Spec under `x-toolgate-…`.

use serde_json::{Map, Value};

use super::{capability, flag, list, object, objects, text, texts};
use crate::{
    Code, Finding, Pointer,
    field_path::FieldPattern,
    model::{
        ApprovalLevel, CapabilityPatch, Classification, Elevation, Governance, OutputAction, OutputRule,
        Permissions, Touches,
    },
};

pub(super) fn governance(document: &Map<String, Value>, findings: &mut Vec<Finding>) -> Governance {
    if !has_blocks(document) {
        return Governance::default();
    }
    let names = BlockNames { is_manifest: document.contains_key("handler") };
    Governance {
        classification: text(document, &names.of("classification")).and_then(Classification::from_name),
        exposed: flag(document, &names.of("exposed")),
        profile: text(document, &names.of("profile")).map(str::to_owned),
        permissions: object(document, &names.of("permissions")).map(permissions).unwrap_or_default(),
        input: given(document, "input").filter(|_| names.is_manifest).map(closed),
        test_input: given(document, "testInput").filter(|_| names.is_manifest),
        output: given(document, &names.of("output")),
        output_policy: object(document, &names.of("outputPolicy"))
            .map(|rules| output_rules(rules, &names.of("outputPolicy"), findings)),
        pii_fields: {
            let key = names.of("piiFields");
            patterns_of(list(document, &key), &Pointer::root().key(&key), findings)
        },
        touches: touches(document, &names.of("touches"), findings),
        capability: capability_of(document, &names, findings),
    }
}

/// Most Safe Tool Specs have none of these blocks.
pub(crate) fn has_blocks(document: &Map<String, Value>) -> bool {
    document.contains_key("handler") || document.keys().any(|key| key.starts_with("x-toolgate-"))
}

/// The key of each block in this kind of document.
struct BlockNames {
    is_manifest: bool,
}

impl BlockNames {
    fn of(&self, block: &str) -> String {
        if self.is_manifest { block.to_owned() } else { format!("x-toolgate-{block}") }
    }
}

fn given(document: &Map<String, Value>, key: &str) -> Option<Value> {
    document.get(key).filter(|value| !value.is_null()).cloned()
}

/// Rejects undeclared arguments instead of passing them on silently.
fn closed(mut input: Value) -> Value {
    if let Value::Object(schema) = &mut input {
        schema.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    input
}

fn permissions(declared: &Map<String, Value>) -> Permissions {
    Permissions {
        required: texts(declared, "required"),
        elevated: objects(declared, "elevated")
            .map(|entry| Elevation {
                when: entry.get("when").cloned().unwrap_or(Value::Bool(true)),
                require: texts(entry, "require"),
            })
            .collect(),
    }
}

fn output_rules(declared: &Map<String, Value>, key: &str, findings: &mut Vec<Finding>) -> Vec<OutputRule> {
    let mut rules = Vec::new();
    for (path, action) in declared {
        let action = action.as_str().and_then(OutputAction::from_name).unwrap_or(OutputAction::Redact);
        match FieldPattern::parse(path) {
            Ok(pattern) => rules.push(OutputRule { pattern, action }),
            Err(why) => findings.push(bad_field_path(Pointer::root().key(key).key(path), &why).at_key()),
        }
    }
    rules
}

fn touches(document: &Map<String, Value>, key: &str, findings: &mut Vec<Finding>) -> Touches {
    let Some(declared) = object(document, key) else { return Touches::default() };
    let mut of = |kind: &str| {
        let at = Pointer::root().key(key).key(kind);
        patterns_of(list(declared, kind), &at, findings)
    };
    Touches { read: of("read"), write: of("write"), connect: of("connect") }
}

fn patterns_of(paths: &[Value], at: &Pointer, findings: &mut Vec<Finding>) -> Vec<FieldPattern> {
    let mut patterns = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        match path.as_str().map(FieldPattern::parse) {
            Some(Ok(pattern)) => patterns.push(pattern),
            Some(Err(why)) => findings.push(bad_field_path(at.index(index), &why)),
            None => {}
        }
    }
    patterns
}

fn bad_field_path(at: Pointer, why: &str) -> Finding {
    Finding::new(
        Code::SpecInvariant,
        at,
        format!("not a field path: {why}"),
        "write `.a.b`, `.a[].b`, `..b`, `a.*`, `*.b` or `*`",
    )
}

/// Decodes the capability block. Without `capability.approval.level`, the older `policy.approval` counts, together
/// with the defaults of that format.
fn capability_of(
    document: &Map<String, Value>,
    names: &BlockNames,
    findings: &mut Vec<Finding>,
) -> CapabilityPatch {
    let key = names.of("capability");
    let mut patch = object(document, &key)
        .map(|declared| capability::capability(declared, &Pointer::root().key(&key), findings))
        .unwrap_or_default();
    let older =
        object(document, "policy").filter(|_| names.is_manifest).and_then(|policy| text(policy, "approval"));
    if let Some(level) = older.and_then(ApprovalLevel::from_name) {
        if patch.approval.level.is_some_and(|newer| newer != level) {
            findings.push(Finding::new(
                Code::SpecInvariant,
                Pointer::new("/policy/approval"),
                "`policy.approval` and `capability.approval.level` disagree",
                "remove `policy`; `capability.approval.level` is the form in use",
            ));
        }
        patch.approval.level.get_or_insert(level);
        patch.extends.get_or_insert_with(|| CapabilityPatch::POLICY_APPROVAL.to_owned());
    }
    patch
}
