//! Is this still the tool that was reviewed? One hash over everything that can change what the tool means or does.
//! The rule is written down in `docs/digest.md`, so that others can compute it.

use std::fmt;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    block::{BLOCKS, key_of_block},
    model::{ApprovalMode, Body, HumanInTheLoop, Param, SandboxOverrides, StaticVariable, ToolSpec},
};

/// SHA-256 of a tool's reviewed form; shown as `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Reads what `Display` wrote, and nothing that looks almost like it.
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

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The digest of a sound document; `spec` is what `check` made of this `document`.
pub fn digest(spec: &ToolSpec, document: &Map<String, Value>) -> Digest {
    let form = reviewed_form(spec, document);
    // RFC 8785 has a form for every finite number and `Value` holds no other. Should that ever fail, plain JSON
    // still tells two documents apart; the worst is one review too many.
    let text = serde_json_canonicalizer::to_string(&form).unwrap_or_else(|_| form.to_string());
    Digest(Sha256::digest(text).into())
}

/// What a reviewer has to look at: the tool without records and bookkeeping, with every default filled in.
pub fn reviewed_form(spec: &ToolSpec, document: &Map<String, Value>) -> Value {
    json!({
        // Separates this rule from every later one: a new rule takes a new number.
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

/// A pair, not a member: of two with one name the later wins, so order and repetition mean something.
fn static_variable(variable: &StaticVariable) -> Value {
    json!([variable.name, variable.value.text()])
}

fn body(spec: &ToolSpec, document: &Map<String, Value>) -> Value {
    match &spec.body {
        Body::JavaScript { code } => json!({ "codeType": "Javascript", "code": code }),
        Body::Handler(_) => {
            // One level for the kind, one for its fields. Below that a null may be part of a request's body.
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

/// The block is open for `x-…` members; they count as written.
fn approval(approval: &HumanInTheLoop, document: &Map<String, Value>) -> Value {
    let written = document.get("humanInTheLoop").and_then(Value::as_object);
    let mut form: Map<String, Value> = written.cloned().unwrap_or_default();
    let mode = match approval.mode {
        // The policy digest tells the two apart (`approval.askFrom`). Passes and approvals are bound to both digests.
        ApprovalMode::Unstated | ApprovalMode::Disabled => "DISABLED",
        ApprovalMode::Required => "REQUIRED",
    };
    form.insert("mode".into(), mode.into());
    form.insert("promptTemplate".into(), approval.prompt_template.clone().into());
    Value::Object(form)
}

/// The blocks under a manifest's names for them, whichever kind of document they stand in.
fn governance(spec: &ToolSpec, document: &Map<String, Value>) -> Value {
    let blocks = BLOCKS.iter().filter_map(|(block, depth)| {
        let written =
            document.get(&key_of_block(block, is_manifest(spec))?).filter(|value| !value.is_null())?;
        Some(((*block).to_owned(), without_nulls(written.clone(), *depth)))
    });
    Value::Object(blocks.collect())
}

/// What we do not know may matter to somebody; it counts as written.
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

/// Top-level fields that have a place of their own in the reviewed form.
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

/// Records and bookkeeping: written by us, or without effect on what the tool is.
const NOT_REVIEWED: [&str; 5] = ["toolSafety", "draft", "createTimestamp", "updateTimestamp", "$schema"];
