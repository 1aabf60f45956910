//! The tool digest: one hash over everything that can change what the tool means or does. `docs/digest.md` specifies
//! it, so others can compute it.

use std::fmt;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    block::{BLOCKS, key_of_block},
    model::{ApprovalMode, Body, HumanInTheLoop, Param, SandboxOverrides, StaticVariable, ToolSpec},
};

/// SHA-256 of a tool's reviewed form, displayed as `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ToolDigest([u8; 32]);

impl ToolDigest {
    /// Parses exactly the format that `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            *byte = pair.iter().try_fold(0, |byte, digit| Some(byte << 4 | nibble(*digit)?))?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for ToolDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ToolDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The digest of a valid document. `spec` is the result of `check` for this `document`.
pub fn digest(spec: &ToolSpec, document: &Map<String, Value>) -> ToolDigest {
    let form = reviewed_form(spec, document);
    // RFC 8785 defines a form for every finite number, and `Value` holds no others. If this ever failed, plain JSON
    // still distinguishes documents; at worst it causes one extra review.
    let text = serde_json_canonicalizer::to_string(&form).unwrap_or_else(|_| form.to_string());
    ToolDigest(Sha256::digest(text).into())
}

/// The part of a tool that a reviewer checks: no records or bookkeeping, all defaults filled in.
pub fn reviewed_form(spec: &ToolSpec, document: &Map<String, Value>) -> Value {
    json!({
        // The version of this rule. A changed rule needs a new number.
        "toolgateDigest": 1,
        "toolId": spec.id.as_str(),
        "name": spec.name,
        "description": spec.description,
        "category": spec.category,
        "tags": spec.tags,
        "params": spec.params.iter().map(param).collect::<Vec<_>>(),
        "staticVariables": spec.statics.iter().map(static_variable).collect::<Vec<_>>(),
        "body": body(spec, document),
        "sandboxOverrides": overrides(&spec.overrides),
        "humanInTheLoop": approval(&spec.approval, document),
        "governance": governance(spec, document),
        "extensions": extensions(spec, document),
    })
}

fn param(param: &Param) -> Value {
    json!({
        "name": param.name,
        "description": param.description,
        "required": param.required,
        "type": param.kind.spec_name(),
        "testValue": param.test_value,
    })
}

/// A pair, not a member: for a repeated name the last value wins, so order and repetition matter.
fn static_variable(variable: &StaticVariable) -> Value {
    json!([variable.name, variable.value.text()])
}

fn body(spec: &ToolSpec, document: &Map<String, Value>) -> Value {
    match &spec.body {
        Body::JavaScript { code } => json!({ "codeType": "Javascript", "code": code }),
        Body::Handler(_) => {
            // One level for the kind, one for its fields. Deeper nulls may be part of a request body.
            let handler = document.get("handler").cloned().unwrap_or_default();
            json!({ "handler": without_nulls(handler, 2) })
        }
    }
}

fn overrides(overrides: &SandboxOverrides) -> Value {
    json!({
        "addAllowClasses": overrides.add_allow_classes,
        "removeAllowClasses": overrides.remove_allow_classes,
        "addDenyClasses": overrides.add_deny_classes,
        "removeDenyClasses": overrides.remove_deny_classes,
        "networkMode": overrides.network_mode.map(crate::model::NetworkMode::name),
        "hostsAllow": overrides.hosts_allow,
        "fileRead": overrides.file_read,
        "fileWrite": overrides.file_write,
        "fsBasePath": overrides.fs_base_path,
        "destructive": overrides.destructive,
    })
}

/// The block may have `x-…` members; they are hashed as written.
fn approval(approval: &HumanInTheLoop, document: &Map<String, Value>) -> Value {
    let written = document.get("humanInTheLoop").and_then(Value::as_object);
    let mut form: Map<String, Value> = written.cloned().unwrap_or_default();
    let mode = match approval.mode {
        // The policy digest distinguishes the two (`approval.askFrom`). Passes and approvals are bound to both
        // digests.
        ApprovalMode::Unstated | ApprovalMode::Disabled => "DISABLED",
        ApprovalMode::Required => "REQUIRED",
    };
    form.insert("mode".into(), mode.into());
    form.insert("promptTemplate".into(), approval.prompt_template.clone().into());
    Value::Object(form)
}

/// The blocks under their manifest names, in both kinds of documents.
fn governance(spec: &ToolSpec, document: &Map<String, Value>) -> Value {
    let blocks = BLOCKS.iter().filter_map(|(block, depth)| {
        let written =
            document.get(&key_of_block(block, is_manifest(spec))?).filter(|value| !value.is_null())?;
        Some(((*block).to_owned(), without_nulls(written.clone(), *depth)))
    });
    Value::Object(blocks.collect())
}

/// Unknown fields are hashed as written, because other programs may use them.
fn extensions(spec: &ToolSpec, document: &Map<String, Value>) -> Value {
    let ours: Vec<String> =
        BLOCKS.iter().filter_map(|(block, _)| key_of_block(block, is_manifest(spec))).collect();
    let is_known = |key: &String| {
        COUNTED.contains(&key.as_str()) || NOT_REVIEWED.contains(&key.as_str()) || ours.contains(key)
    };
    let unknown = document.iter().filter(|(key, _)| !is_known(key));
    Value::Object(unknown.map(|(key, value)| (key.clone(), value.clone())).collect())
}

const fn is_manifest(spec: &ToolSpec) -> bool {
    matches!(spec.body, Body::Handler(_))
}

/// Removes null members from this object and the objects in it, down to a depth.
fn without_nulls(value: Value, depth: usize) -> Value {
    match value {
        Value::Object(members) if depth > 0 => Value::Object(
            members
                .into_iter()
                .filter(|(_, member)| !member.is_null())
                .map(|(key, member)| (key, without_nulls(member, depth - 1)))
                .collect(),
        ),
        other => other,
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

const PREFIX: &str = "sha256:";

/// Top-level fields with their own entry in the reviewed form.
const COUNTED: [&str; 12] = [
    "toolId",
    "name",
    "description",
    "category",
    "tags",
    "params",
    "staticVariables",
    "code",
    "codeType",
    "handler",
    "sandboxOverrides",
    "humanInTheLoop",
];

/// Records and bookkeeping: written by Toolgate, or without effect on the tool.
const NOT_REVIEWED: [&str; 5] = ["toolSafety", "draft", "createTimestamp", "updateTimestamp", "$schema"];
