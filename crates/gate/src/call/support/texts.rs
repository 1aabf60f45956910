//! Collects the texts of a JSON value.

use serde_json::{Map, Value};

/// Every text by itself, keys included, without JSON's quotes and escapes.
pub fn of(value: &Value) -> Vec<&str> {
    let mut texts = Vec::new();
    collect(value, &mut texts);
    texts
}

pub fn of_members(members: &Map<String, Value>) -> Vec<&str> {
    let mut texts = Vec::new();
    collect_members(members, &mut texts);
    texts
}

fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => collect_members(members, texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn collect_members<'v>(members: &'v Map<String, Value>, texts: &mut Vec<&'v str>) {
    for (key, value) in members {
        texts.push(key);
        collect(value, texts);
    }
}
