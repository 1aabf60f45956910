//! Arguments that name a path or host: declared by the tool, or recognised by their schema.

use std::collections::HashMap;

use serde_json::{Map, Value};
use toolgate_gate::EffectKind;
use toolgate_policy::EffectivePolicy;
use toolgate_spec::{
    FieldPattern,
    model::{Classification, NetworkMode, ToolSpec},
};

use super::NetworkUpgrade;

#[derive(Debug)]
pub struct TargetField {
    pattern: FieldPattern,
    kind: EffectKind,
    spelling: HostSpelling,
}

/// How a host may be written.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum HostSpelling {
    /// A URL or a bare name.
    Any,
    /// A URL with a scheme. Without one, programs that take URLs may read a file.
    Url,
}

/// One value that names a path or host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NamedTarget<'v> {
    pub kind: EffectKind,
    pub text: &'v str,
    pub spelling: HostSpelling,
}

pub fn of(spec: &ToolSpec, policy: &EffectivePolicy, upgrade: NetworkUpgrade) -> Vec<TargetField> {
    let touches = &spec.governance.touches;
    let declared = [
        (&touches.read, EffectKind::Read),
        (&touches.write, EffectKind::Write),
        (&touches.connect, EffectKind::Fetch),
    ];
    let mut fields: Vec<TargetField> = declared
        .into_iter()
        .flat_map(|(patterns, kind)| patterns.iter().map(move |pattern| (pattern.clone(), kind)))
        .map(|(pattern, kind)| TargetField { pattern, kind, spelling: HostSpelling::Any })
        .collect();
    // A path of a read-only tool is read. For other tools it may be written, and the stricter rule applies.
    let path_kind = match spec.governance.classification {
        Some(Classification::Read) => EffectKind::Read,
        _ if policy.files.write.value => EffectKind::Write,
        _ => EffectKind::Read,
    };
    if let Some(input) = &spec.governance.input {
        let reaches_out = policy.network.mode.value != NetworkMode::Blocked || upgrade == NetworkUpgrade::Ask;
        from_schema(input, input, &mut Vec::new(), &mut |path, format| {
            let (kind, spelling) = match format {
                "path" => (path_kind, HostSpelling::Any),
                // Without network access, a URL is ordinary text.
                "uri" | "url" if reaches_out => (EffectKind::Fetch, HostSpelling::Url),
                "hostname" if reaches_out => (EffectKind::Fetch, HostSpelling::Any),
                _ => return,
            };
            if let Ok(pattern) = FieldPattern::parse(&format!(".{}", path.join("."))) {
                fields.push(TargetField { pattern, kind, spelling });
            }
        });
    }
    fields
}

pub fn name_any_path(fields: &[TargetField]) -> bool {
    fields.iter().any(TargetField::names_path)
}

pub fn name_path(fields: &[TargetField], name: &str) -> bool {
    name_path_at(fields, &[name])
}

/// The same for a field at any depth.
pub fn name_path_at(fields: &[TargetField], path: &[&str]) -> bool {
    fields.iter().filter(|field| field.names_path()).any(|field| field.pattern.matches(path))
}

impl TargetField {
    fn names_path(&self) -> bool {
        matches!(self.kind, EffectKind::Read | EffectKind::Write)
    }
}

/// All texts of the arguments that a field names, in order.
pub fn named<'v>(fields: &[TargetField], arguments: &'v Map<String, Value>) -> Vec<NamedTarget<'v>> {
    let mut found = TargetList::default();
    if !fields.is_empty() {
        for (name, value) in arguments {
            collect(fields, value, &mut vec![name.as_str()], &mut found);
        }
    }
    found.named
}

/// Duplicates are checked once. Lookups use a map, because the caller chooses the number of names.
#[derive(Default)]
struct TargetList<'v> {
    named: Vec<NamedTarget<'v>>,
    places: HashMap<(EffectKind, &'v str), usize>,
}

impl<'v> TargetList<'v> {
    fn add(&mut self, one: NamedTarget<'v>) {
        let place = *self.places.entry((one.kind, one.text)).or_insert(self.named.len());
        match self.named.get_mut(place) {
            // The stricter spelling applies.
            Some(known) => known.spelling = known.spelling.max(one.spelling),
            None => self.named.push(one),
        }
    }
}

fn collect<'v>(
    fields: &[TargetField],
    value: &'v Value,
    path: &mut Vec<&'v str>,
    found: &mut TargetList<'v>,
) {
    match value {
        Value::String(text) => {
            for field in fields.iter().filter(|field| field.pattern.matches(path)) {
                found.add(NamedTarget { kind: field.kind, text, spelling: field.spelling });
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(fields, item, path, found)),
        Value::Object(members) => {
            for (name, value) in members {
                path.push(name);
                collect(fields, value, path, found);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Visits every `format` in a schema with the path of its field.
fn from_schema(
    root: &Value,
    schema: &Value,
    path: &mut Vec<String>,
    visit: &mut impl FnMut(&[String], &str),
) {
    let Some(members) = schema.as_object().filter(|_| path.len() <= DEEPEST) else { return };
    if let Some(format) = members.get("format").and_then(Value::as_str) {
        visit(path, format);
    }
    for (name, property) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        path.push(name.clone());
        from_schema(root, property, path, visit);
        path.pop();
    }
    for keyword in ["items", "additionalProperties", "not", "if", "then", "else"] {
        if let Some(inner) = members.get(keyword) {
            from_schema(root, inner, path, visit);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        for inner in members.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            from_schema(root, inner, path, visit);
        }
    }
    let target = members.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
    // Accepted documents contain no circular references.
    if let Some(inner) = target.and_then(|target| root.pointer(target)) {
        from_schema(root, inner, path, visit);
    }
}

pub const DEEPEST: usize = 32;
