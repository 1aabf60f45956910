//! Explains schema violations to the author of a document.

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::{Map, Value};

use super::Schema;
use crate::{Code, Finding, Pointer};

/// Explains one violation. An object with several unknown keys yields one finding per key.
pub(crate) fn explain(schema: Schema, error: &ValidationError<'_>) -> Vec<Finding> {
    let at = Pointer::new(error.instance_path().as_str());
    if let Kind::AdditionalProperties { unexpected } = error.kind() {
        let known = known_keys(schema, error);
        return unexpected.iter().map(|key| unknown_key(&at, key, &known)).collect();
    }
    let (message, remedy) = words(error);
    vec![Finding::new(Code::SpecParse, at, message, remedy)]
}

fn words(error: &ValidationError<'_>) -> (String, String) {
    let instance = error.instance();
    match error.kind() {
        Kind::Required { property } => match property.as_str().unwrap_or_default() {
            "testValue" => (
                "`testValue` is missing on a required parameter".into(),
                "write the value that the test run uses".into(),
            ),
            name => (format!("`{name}` is missing"), format!("add `{name}`")),
        },
        Kind::Type { kind } => {
            let expected = expected_types(kind);
            let remedy = if expected == "a boolean" { "`true` or `false`" } else { &expected };
            (format!("{} where {expected} is expected", describe(instance)), format!("write {remedy}"))
        }
        Kind::Enum { options } => {
            let options: Vec<String> =
                options.as_array().into_iter().flatten().map(ToString::to_string).collect();
            (
                format!("{} is none of the known values", describe(instance)),
                format!("write one of {}", options.join(", ")),
            )
        }
        Kind::Constant { expected_value } => (
            format!("{} where `{expected_value}` is expected", describe(instance)),
            format!("write {expected_value}"),
        ),
        Kind::MaxItems { limit } => (format!("more than {limit} entries"), format!("keep at most {limit}")),
        Kind::MinItems { limit } => {
            (format!("fewer than {limit} entries"), format!("write at least {limit}"))
        }
        Kind::MaxLength { limit } => {
            (format!("longer than {limit} characters"), format!("keep it within {limit} characters"))
        }
        Kind::MinLength { .. } => ("empty text".into(), "write at least one character".into()),
        Kind::Maximum { limit } => {
            (format!("{} is more than {limit}", describe(instance)), format!("write at most {limit}"))
        }
        Kind::Minimum { limit } => {
            (format!("{} is less than {limit}", describe(instance)), format!("write at least {limit}"))
        }
        Kind::MinProperties { limit } => (
            format!("{} where at least {limit} is expected", members(instance)),
            format!("write at least {limit}"),
        ),
        Kind::MaxProperties { limit } => (
            format!("{} where at most {limit} is expected", members(instance)),
            format!("keep {limit} of them"),
        ),
        Kind::Pattern { pattern } => (
            format!("{} does not have the expected form", describe(instance)),
            format!("it must match `{pattern}`"),
        ),
        _ => (shorten(&error.masked().to_string(), 200), "`toolgate schema` prints what is expected".into()),
    }
}

/// Omits null: it means the same as an absent field.
pub(super) fn expected_types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => with_article(&one.to_string()),
        TypeKind::Multiple(several) => {
            let names = several.iter().map(|one| one.to_string()).filter(|name| name != "null");
            names.map(|name| with_article(&name)).collect::<Vec<_>>().join(" or ")
        }
    }
}

fn with_article(name: &str) -> String {
    match name {
        "null" => name.to_owned(),
        _ if name.starts_with(['a', 'i', 'o']) => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

fn unknown_key(at: &Pointer, key: &str, known: &[&str]) -> Finding {
    let remedy = match crate::similar::closest(key, known.iter().copied()) {
        Some(close) => format!("did you mean `{close}`?"),
        None if known.is_empty() => "remove it".into(),
        None => format!("remove it; known here: {}", known.join(", ")),
    };
    Finding::new(Code::SpecParse, at.key(key), format!("unknown key `{}`", shorten(key, 40)), remedy).at_key()
}

/// The known properties at the violated part of the schema.
fn known_keys(schema: Schema, error: &ValidationError<'_>) -> Vec<&'static str> {
    let path = error.schema_path().as_str();
    let holder = path.strip_suffix("/additionalProperties").unwrap_or(path);
    let properties =
        schema.document().pointer(holder).and_then(|part| part.get("properties")).and_then(Value::as_object);
    properties.into_iter().flat_map(Map::keys).map(String::as_str).collect()
}

pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
        Value::String(text) => format!("\"{}\"", shorten(text, 40)),
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
    }
}

fn members(value: &Value) -> String {
    match value.as_object().map_or(0, Map::len) {
        1 => "1 member".into(),
        count => format!("{count} members"),
    }
}

pub(super) fn shorten(text: &str, most: usize) -> String {
    let mut clean: String =
        text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(most).collect();
    if text.chars().nth(most).is_some() {
        clean.push('…');
    }
    clean
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(change: &Value, expect: &[&str]) {
        let mut document = json!({ "name": "t", "code": "return 1", "codeType": "Javascript" });
        for (key, value) in change.as_object().unwrap() {
            document[key] = value.clone();
        }
        let mut said: Vec<String> = Schema::SafeToolSpec
            .violations(&document)
            .findings
            .into_iter()
            .map(|finding| format!("{} {} / {}", finding.at.as_str(), finding.message, finding.remedy))
            .collect();
        said.sort();
        assert_eq!(said, expect);
    }

    #[test]
    fn violations_have_position_and_remedy() {
        check(&json!({}), &[]);
        check(
            &json!({ "sandboxOverrides": { "fileread": true, "network": 1 }, "tags": ["a", "b", "c"] }),
            &[
                "/sandboxOverrides/fileread unknown key `fileread` / did you mean `fileRead`?",
                "/sandboxOverrides/network unknown key `network` / remove it; known here: addAllowClasses, removeAllowClasses, addDenyClasses, removeDenyClasses, networkMode, hostsAllow, fileRead, fileWrite, fsBasePath, destructive",
                "/tags more than 2 entries / keep at most 2",
            ],
        );
        check(
            &json!({ "params": [{ "name": "a", "required": true, "type": "TEXT" }], "draft": "no" }),
            &[
                "/draft \"no\" where a boolean is expected / write `true` or `false`",
                "/params/0 `testValue` is missing on a required parameter / write the value that the test run uses",
                "/params/0/type \"TEXT\" is none of the known values / write one of \"STRING\", \"INTEGER\", \"NUMBER\", \"BOOLEAN\", \"OBJECT\", \"ARRAY\"",
            ],
        );
        check(
            &json!({ "name": " ", "staticVariables": [{}, { "a": "1", "b": "2" }] }),
            &[
                "/name \" \" does not have the expected form / it must match `\\S`",
                "/staticVariables/0 0 members where at least 1 is expected / write at least 1",
                "/staticVariables/1 2 members where at most 1 is expected / keep 1 of them",
            ],
        );
    }
}
