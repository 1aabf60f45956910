//! Which arguments name paths? The same ones that the survey judges; a command gets the path that was found for them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use toolgate_spec::{model::ToolSpec, project};

use crate::survey::{CallGrants, Surveyor};

/// Names of top-level arguments; lists of paths count by the name of the list. One that holds a path anywhere counts too:
/// where the survey does not judge it, it is handed to nobody.
pub fn names(spec: &ToolSpec, surveyor: &Surveyor) -> Result<BTreeSet<String>, String> {
    let schema = project::input_schema(spec).map_err(|error| error.to_string())?;
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_path = |(name, property): &(&String, &Value)| surveyor.judges_path(name) || says_path(property);
    Ok(properties.into_iter().flatten().filter(is_path).map(|(name, _)| name.clone()).collect())
}

/// The arguments with every path as it was found, for whoever makes a command line out of them.
pub fn found(
    arguments: &Map<String, Value>,
    paths: &BTreeSet<String>,
    granted: &CallGrants,
) -> Map<String, Value> {
    let real = |value: &Value| match value.as_str() {
        Some(text) => granted
            .paths
            .iter()
            .find(|path| path.asked == text)
            .map_or(Value::Null, |path| Value::from(path.real.as_str())),
        None => value.clone(),
    };
    let replaced = arguments.iter().map(|(name, value)| {
        let value = match value {
            value if !paths.contains(name) => value.clone(),
            Value::Array(items) => items.iter().map(real).collect(),
            value => real(value),
        };
        (name.clone(), value)
    });
    replaced.collect()
}

/// Anywhere in the property's schema, which holds no references.
fn says_path(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.get("format").and_then(Value::as_str) == Some("path") || members.values().any(says_path)
        }
        Value::Array(items) => items.iter().any(says_path),
        _ => false,
    }
}
