//! Generates a JSON Schema from the table of keys, for editors. It may accept more than the parser, never less.

use serde_json::{Map, Value, json};

use crate::{
    key::{ConfigKey, ConfigValueKind},
    keys::ROOT,
    quantity::{DURATION_PATTERN, SIZE_PATTERN},
    read::{MAX_ITEMS, VERSION},
};

/// The schema of `toolgate.yaml`, as in `schemas/config.json`.
pub fn schema() -> Value {
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://toolgate.dev/schemas/config.json",
        "title": "Toolgate configuration",
        "description": "toolgate.yaml. Only Toolgate itself checks the rules between keys.",
    });
    extend(&mut schema, section(ROOT));
    schema
}

fn section(keys: &[ConfigKey]) -> Value {
    let properties: Map<String, Value> =
        keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let required: Vec<_> = keys.iter().filter(|key| key.is_required()).map(|key| key.name).collect();
    let mut section = json!({ "type": "object", "additionalProperties": false });
    if !required.is_empty() {
        extend(&mut section, json!({ "required": required }));
    }
    extend(&mut section, json!({ "properties": properties }));
    section
}

fn property(key: &ConfigKey) -> Value {
    let mut property = json!({ "description": key.doc });
    extend(&mut property, kind(&key.kind));
    if key.is_nullable() {
        allow_null(&mut property);
    }
    if let Some(fallback) = key.fallback_value() {
        extend(&mut property, json!({ "default": fallback }));
    }
    property
}

fn kind(kind: &ConfigValueKind) -> Value {
    match kind {
        ConfigValueKind::Version => json!({ "type": "integer", "const": VERSION }),
        ConfigValueKind::Flag => json!({ "type": "boolean" }),
        ConfigValueKind::Number { least, most } => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        ConfigValueKind::Duration { .. } => json!({ "type": "string", "pattern": DURATION_PATTERN }),
        ConfigValueKind::Size { least, most } => {
            json!({ "type": ["integer", "string"], "minimum": least, "maximum": most, "pattern": SIZE_PATTERN })
        }
        ConfigValueKind::Choice(words) => json!({ "type": "string", "enum": words }),
        ConfigValueKind::Choices(words) => {
            let items = json!({ "type": "string", "enum": words });
            json!({ "type": "array", "minItems": 1, "maxItems": MAX_ITEMS, "items": items })
        }
        ConfigValueKind::Text(shape) => json!({ "type": "string", "pattern": shape.pattern() }),
        ConfigValueKind::Texts(shape) => {
            let items = json!({ "type": "string", "pattern": shape.pattern() });
            json!({ "type": "array", "maxItems": MAX_ITEMS, "items": items })
        }
        ConfigValueKind::Section(keys) => section(keys),
        ConfigValueKind::OneOf(keys) => {
            let properties: Map<String, Value> =
                keys.iter().map(|key| (key.name.to_owned(), one(key))).collect();
            json!({
                "type": "object",
                "additionalProperties": false,
                "minProperties": 1,
                "maxProperties": 1,
                "properties": properties,
            })
        }
        ConfigValueKind::Sections(keys) => {
            json!({ "type": "array", "maxItems": MAX_ITEMS, "items": section(keys) })
        }
    }
}

/// One of several alternatives. It is never null: writing the key chooses it.
fn one(key: &ConfigKey) -> Value {
    let mut property = json!({ "description": key.doc });
    extend(&mut property, kind(&key.kind));
    property
}

fn allow_null(property: &mut Value) {
    if let Some(of_type) = property.get_mut("type") {
        *of_type = json!([of_type.take(), "null"]);
    }
}

fn extend(object: &mut Value, with: Value) {
    if let (Value::Object(object), Value::Object(with)) = (object, with) {
        object.extend(with);
    }
}

#[cfg(test)]
mod tests;
