//! Parses test values: text in the document, typed values in the test run.

use serde_json::Value;

use crate::model::ParamType;

/// Parses a test value into its declared type, or explains the error.
pub fn parse(kind: ParamType, written: &str) -> Result<Value, String> {
    match kind {
        ParamType::String => Ok(Value::String(written.to_owned())),
        ParamType::Integer => {
            written.parse::<i64>().map(Value::from).map_err(|_| "write a whole number such as `42`".into())
        }
        ParamType::Number => json(written, Value::is_number, "a number such as `2.5`"),
        ParamType::Boolean => match written {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err("write `true` or `false`".into()),
        },
        ParamType::Object => json(written, Value::is_object, "a JSON object such as `{\"x\": 1}`"),
        ParamType::Array => json(written, Value::is_array, "a JSON array such as `[1, 2]`"),
    }
}

fn json(written: &str, holds: fn(&Value) -> bool, wanted: &str) -> Result<Value, String> {
    serde_json::from_str(written).ok().filter(holds).ok_or_else(|| format!("write {wanted}"))
}
