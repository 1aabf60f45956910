//! Which arguments name something outside? Those the tool declares, and those whose schema says what they are.

use std::collections::HashMap;

use serde_json::{Map, Value};
use toolgate_gate::EffectKind;
use toolgate_policy::EffectivePolicy;
use toolgate_spec::{
    FieldPattern,
    model::{Classification, NetworkMode, ToolSpec},
};

use super::WithoutNetwork;

#[derive(Debug)]
pub struct Field {
    pattern: FieldPattern,
    kind: EffectKind,
    spelling: Spelling,
}

/// How must a host be named?
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Spelling {
    /// By a URL, or by its bare name.
    Any,
    /// By a URL with its scheme: without one, programs that take URLs may find a file by it.
    Url,
}

/// One value that names something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Named<'v> {
    pub kind: EffectKind,
    pub text: &'v str,
    pub spelling: Spelling,
}

pub fn of(spec: &ToolSpec, policy: &EffectivePolicy, without_network: WithoutNetwork) -> Vec<Field> {
    let touches = &spec.governance.touches;
    let declared = [
        (&touches.read, EffectKind::Read),
        (&touches.write, EffectKind::Write),
        (&touches.connect, EffectKind::Fetch),
    ];
    let mut fields: Vec<Field> = declared
        .into_iter()
        .flat_map(|(patterns, kind)| patterns.iter().map(move |pattern| (pattern.clone(), kind)))
        .map(|(pattern, kind)| Field { pattern, kind, spelling: Spelling::Any })
        .collect();
    // A path of a tool that only reads is read. Of another one it may be written, and the stricter reading counts.
    let path_kind = match spec.governance.classification {
        Some(Classification::Read) => EffectKind::Read,
        _ if policy.files.write.value => EffectKind::Write,
        _ => EffectKind::Read,
    };
    if let Some(input) = &spec.governance.input {
        let reaches_out =
            policy.network.mode.value != NetworkMode::Blocked || without_network == WithoutNetwork::Ask;
        from_schema(input, input, &mut Vec::new(), &mut |path, format| {
            let (kind, spelling) = match format {
                "path" => (path_kind, Spelling::Any),
                // Without a network a URL is a text like any other.
                "uri" | "url" if reaches_out => (EffectKind::Fetch, Spelling::Url),
                "hostname" if reaches_out => (EffectKind::Fetch, Spelling::Any),
                _ => return,
            };
            if let Ok(pattern) = FieldPattern::parse(&format!(".{}", path.join("."))) {
                fields.push(Field { pattern, kind, spelling });
            }
        });
    }
    fields
}

pub fn name_any_path(fields: &[Field]) -> bool {
    fields.iter().any(Field::names_path)
}

pub fn name_path(fields: &[Field], name: &str) -> bool {
    name_path_at(fields, &[name])
}

/// The same for a field at any depth.
pub fn name_path_at(fields: &[Field], path: &[&str]) -> bool {
    fields.iter().filter(|field| field.names_path()).any(|field| field.pattern.matches(path))
}

impl Field {
    fn names_path(&self) -> bool {
        matches!(self.kind, EffectKind::Read | EffectKind::Write)
    }
}

/// Every text of the arguments that a field names, in the order of the arguments.
pub fn named<'v>(fields: &[Field], arguments: &'v Map<String, Value>) -> Vec<Named<'v>> {
    let mut found = Found::default();
    if !fields.is_empty() {
        for (name, value) in arguments {
            collect(fields, value, &mut vec![name.as_str()], &mut found);
        }
    }
    found.named
}

/// What is named twice is judged once. A caller chooses how much is named, so each is looked up and not searched for.
#[derive(Default)]
struct Found<'v> {
    named: Vec<Named<'v>>,
    places: HashMap<(EffectKind, &'v str), usize>,
}

impl<'v> Found<'v> {
    fn add(&mut self, one: Named<'v>) {
        let place = *self.places.entry((one.kind, one.text)).or_insert(self.named.len());
        match self.named.get_mut(place) {
            // By the stricter of the two.
            Some(known) => known.spelling = known.spelling.max(one.spelling),
            None => self.named.push(one),
        }
    }
}

fn collect<'v>(fields: &[Field], value: &'v Value, path: &mut Vec<&'v str>, found: &mut Found<'v>) {
    match value {
        Value::String(text) => {
            for field in fields.iter().filter(|field| field.pattern.matches(path)) {
                found.add(Named { kind: field.kind, text, spelling: field.spelling });
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

/// Visits every `format` in a schema with the path of the field that it is about.
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
    // A reference never leads back to itself in a document that was accepted.
    if let Some(inner) = target.and_then(|target| root.pointer(target)) {
        from_schema(root, inner, path, visit);
    }
}

pub const DEEPEST: usize = 32;
