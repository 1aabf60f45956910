//! Arguments that name paths. The survey checks the same ones; a command receives their real paths.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use toolgate_spec::{model::ToolSpec, project};

use crate::survey::{CallGrants, Surveyor};

/// Names of top-level arguments, including lists of paths and values that contain a path at any depth. A path that
/// the survey does not check is never passed on.
pub fn names(spec: &ToolSpec, surveyor: &Surveyor) -> Result<BTreeSet<String>, String> {
    let schema = project::input_schema(spec).map_err(|error| error.to_string())?;
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_path = |(name, property): &(&String, &Value)| surveyor.judges_path(name) || says_path(property);
    Ok(properties.into_iter().flatten().filter(is_path).map(|(name, _)| name.clone()).collect())
}

/// The arguments with every path replaced by its real path.
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

/// Searches the whole schema of the property, which contains no references.
fn says_path(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.get("format").and_then(Value::as_str) == Some("path") || members.values().any(says_path)
        }
        Value::Array(items) => items.iter().any(says_path),
        _ => false,
    }
}
