//! Converts a schema to Google's dialect, a subset of OpenAPI 3.0. Unsupported keywords are dropped if that only
//! widens the schema, because the gate validates with the real one. Otherwise the tool is rejected.

use serde_json::{Map, Value, json};

use super::ProjectError;

/// `schema` is already expanded.
pub(super) fn restrict(schema: &Value) -> Result<Value, ProjectError> {
    of_schema(schema, "input")
}

fn of_schema(schema: &Value, at: &str) -> Result<Value, ProjectError> {
    let Value::Object(members) = schema else { return of_boolean(schema, at) };
    if let Some(keyword) = ["allOf", "prefixItems"].into_iter().find(|keyword| members.contains_key(*keyword))
    {
        return Err(refused(at, &format!("Google's function declarations do not support `{keyword}`")));
    }
    let mut flat = Map::new();
    if let Some(choices) = ["anyOf", "oneOf"].into_iter().find_map(|key| members.get(key)) {
        // In this dialect a schema with choices has no type.
        copy(members, &mut flat, &["description"]);
        let choices = choices.as_array().map_or(&[][..], Vec::as_slice).iter();
        let choices: Result<Vec<Value>, _> = choices.map(|choice| of_schema(choice, at)).collect();
        flat.insert("anyOf".into(), Value::Array(choices?));
        return Ok(Value::Object(flat));
    }
    let (kinds, nullable) = kinds_of(members);
    if let [_, _, ..] = kinds.as_slice() {
        copy(members, &mut flat, &["description"]);
        let choices: Result<Vec<Value>, _> =
            kinds.iter().map(|kind| of_kind(members, kind, Map::new(), at)).collect();
        flat.insert("anyOf".into(), Value::Array(choices?));
    } else {
        copy(members, &mut flat, &["description"]);
        let kind = kinds.first().map_or("string", String::as_str);
        let Value::Object(typed) = of_kind(members, kind, flat, at)? else { return Ok(json!({})) };
        flat = typed;
    }
    if nullable {
        flat.insert("nullable".into(), true.into());
    }
    Ok(Value::Object(flat))
}

/// `true` becomes a string, because a string is a valid value. `false` cannot be expressed.
fn of_boolean(schema: &Value, at: &str) -> Result<Value, ProjectError> {
    match schema {
        Value::Bool(true) => Ok(json!({ "type": "string" })),
        _ => Err(refused(at, "no value matches this schema")),
    }
}

fn of_kind(
    members: &Map<String, Value>,
    kind: &str,
    remarks: Map<String, Value>,
    at: &str,
) -> Result<Value, ProjectError> {
    let mut flat = Map::new();
    flat.insert("type".into(), kind.into());
    flat.extend(remarks);
    match kind {
        "object" => object(members, &mut flat, at)?,
        "array" => {
            let items = members.get("items").unwrap_or(&Value::Bool(true));
            flat.insert("items".into(), of_schema(items, &format!("{at}/items"))?);
            copy(members, &mut flat, &["minItems", "maxItems"]);
        }
        "string" => {
            copy(members, &mut flat, &["minLength", "maxLength", "pattern"]);
            choices(members, &mut flat);
            keep_format(members, &mut flat, &["date-time"]);
        }
        "integer" | "number" => {
            copy(members, &mut flat, &["minimum", "maximum"]);
            keep_format(members, &mut flat, &["float", "double", "int32", "int64"]);
        }
        _ => {}
    }
    Ok(Value::Object(flat))
}

fn object(members: &Map<String, Value>, flat: &mut Map<String, Value>, at: &str) -> Result<(), ProjectError> {
    let declared = members.get("properties").and_then(Value::as_object);
    let mut properties = Map::new();
    for (name, schema) in declared.into_iter().flatten() {
        properties.insert(name.clone(), of_schema(schema, &format!("{at}/properties/{name}"))?);
    }
    // The API rejects an object with empty properties, so a free object has no `properties`.
    if !properties.is_empty() {
        let is_declared = |name: &&Value| name.as_str().is_some_and(|name| properties.contains_key(name));
        let required = members.get("required").and_then(Value::as_array);
        let required: Vec<Value> = required.into_iter().flatten().filter(is_declared).cloned().collect();
        flat.insert("properties".into(), properties.into());
        if !required.is_empty() {
            flat.insert("required".into(), required.into());
        }
    }
    Ok(())
}

/// Enum values must be strings in this dialect.
fn choices(members: &Map<String, Value>, flat: &mut Map<String, Value>) {
    let listed = members.get("enum").and_then(Value::as_array);
    let all = listed.into_iter().flatten().chain(members.get("const"));
    let texts: Vec<Value> = all.filter(|value| value.is_string()).cloned().collect();
    if !texts.is_empty() {
        flat.insert("format".into(), "enum".into());
        flat.insert("enum".into(), texts.into());
    }
}

fn keep_format(members: &Map<String, Value>, flat: &mut Map<String, Value>, known: &[&str]) {
    let format = members.get("format").and_then(Value::as_str).filter(|format| known.contains(format));
    if let Some(format) = format {
        flat.entry("format").or_insert_with(|| format.into());
    }
}

/// The declared types, or those implied by other keywords, and whether null is allowed.
fn kinds_of(members: &Map<String, Value>) -> (Vec<String>, bool) {
    let mut kinds: Vec<String> = match members.get("type") {
        Some(Value::String(kind)) => vec![kind.clone()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ if members.contains_key("properties") => vec!["object".into()],
        _ if members.contains_key("items") => vec!["array".into()],
        _ => of_values(members),
    };
    let nullable = kinds.iter().any(|kind| kind == "null");
    kinds.retain(|kind| kind != "null");
    (kinds, nullable)
}

fn of_values(members: &Map<String, Value>) -> Vec<String> {
    let listed = members.get("enum").and_then(Value::as_array);
    let mut kinds: Vec<String> = Vec::new();
    for value in listed.into_iter().flatten().chain(members.get("const")) {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        if !kinds.iter().any(|known| known == kind) {
            kinds.push(kind.to_owned());
        }
    }
    kinds
}

fn copy(from: &Map<String, Value>, to: &mut Map<String, Value>, keywords: &[&str]) {
    for keyword in keywords {
        if let Some(value) = from.get(*keyword) {
            to.insert((*keyword).to_owned(), value.clone());
        }
    }
}

fn refused(at: &str, message: &str) -> ProjectError {
    ProjectError { at: at.to_owned(), message: message.to_owned() }
}
