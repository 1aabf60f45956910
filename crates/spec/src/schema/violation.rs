//! Explains schema violations of a value to the model that sent it.

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};
use serde_json::Value;

use super::explain::{describe, expected_types, shorten};

/// One problem of a value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    /// A JSON pointer into the value; empty for the value itself.
    pub at: String,
    pub expected: String,
    pub came: String,
    /// The message for readers who may not see the value: the violated schema rule and the type of the value. Member
    /// names belong to the value too, so the position is one in the schema.
    pub without_value: String,
}

/// `schema` is the whole schema, for the examples next to a pattern.
pub(super) fn of(error: &ValidationError<'_>, schema: Option<&Value>) -> Violation {
    let at = shorten(error.instance_path().as_str(), 200);
    let (expected, came) = words(error, schema);
    let type_of_it = match error.kind() {
        Kind::Required { .. } => "nothing",
        _ => type_of(error.instance()),
    };
    let rule = shorten(error.schema_path().as_str(), 200);
    let without_value = match &expected {
        Some(expected) => format!("`{rule}`: expected {}, got {type_of_it}", shorten(expected, 300)),
        None => format!("`{rule}` is violated, got {type_of_it}"),
    };
    let expected = expected.unwrap_or_else(|| error.masked().to_string());
    Violation { at, expected: shorten(&expected, 300), came: shorten(&came, 120), without_value }
}

/// The expectation, if it can be stated without the value, and a description of the value.
fn words(error: &ValidationError<'_>, schema: Option<&Value>) -> (Option<String>, String) {
    let instance = error.instance();
    let came = || describe(instance);
    let (expected, came) = match error.kind() {
        Kind::Required { property } => (format!("`{}`", text_of(property)), "nothing".to_owned()),
        Kind::Type { kind } => (expected_types(kind), came()),
        Kind::Enum { options } => {
            let options: Vec<String> =
                options.as_array().into_iter().flatten().map(ToString::to_string).collect();
            (format!("one of {}", options.join(", ")), came())
        }
        Kind::Constant { expected_value } => (format!("`{expected_value}`"), came()),
        Kind::AdditionalProperties { unexpected } => {
            let names: Vec<String> =
                unexpected.iter().map(|name| format!("`{}`", shorten(name, 40))).collect();
            ("no other members than those declared".to_owned(), names.join(", "))
        }
        Kind::MaxItems { limit } => (format!("at most {limit} entries"), counted(instance)),
        Kind::MinItems { limit } => (format!("at least {limit} entries"), counted(instance)),
        Kind::MaxLength { limit } => (format!("at most {limit} characters"), counted(instance)),
        Kind::MinLength { limit } => (format!("at least {limit} characters"), counted(instance)),
        Kind::Maximum { limit } => (format!("at most {limit}"), came()),
        Kind::Minimum { limit } => (format!("at least {limit}"), came()),
        Kind::ExclusiveMaximum { limit } => (format!("less than {limit}"), came()),
        Kind::ExclusiveMinimum { limit } => (format!("more than {limit}"), came()),
        Kind::MultipleOf { multiple_of } => (format!("a multiple of {multiple_of}"), came()),
        Kind::Pattern { .. } => (allowed_text(error, schema), came()),
        Kind::Format { format } => (format!("text in the format `{format}`"), came()),
        Kind::UniqueItems => ("entries that are all different".to_owned(), "one of them twice".to_owned()),
        // Other messages of the library may name members of the value.
        _ => return (None, came()),
    };
    (Some(expected), came)
}

/// Explains a pattern by the examples next to it, because few people and models read regular expressions.
fn allowed_text(error: &ValidationError<'_>, schema: Option<&Value>) -> String {
    let rule = error.schema_path().as_str();
    let beside = rule.strip_suffix("/pattern").and_then(|node| schema?.pointer(node));
    let examples = beside.and_then(|node| node.get("examples")).and_then(Value::as_array);
    let examples: Vec<String> = examples
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .take(MOST_EXAMPLES)
        .map(|example| format!("`{}`", shorten(example, 40)))
        .collect();
    if examples.is_empty() {
        return "text in the form that the description of this argument states".to_owned();
    }
    format!("text such as {}", examples.join(" or "))
}

const MOST_EXAMPLES: usize = 3;

fn text_of(property: &Value) -> String {
    property.as_str().map_or_else(|| property.to_string(), str::to_owned)
}

fn counted(instance: &Value) -> String {
    match instance {
        Value::String(text) => format!("{} characters", text.chars().count()),
        Value::Array(items) => format!("{} entries", items.len()),
        other => describe(other),
    }
}

const fn type_of(instance: &Value) -> &'static str {
    match instance {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::CompiledSchema;
    use super::*;

    #[track_caller]
    fn check(schema: &Value, value: &Value, expect: &str) {
        let violations = CompiledSchema::new(schema).unwrap().violations(value, 9);
        let told: Vec<&str> = violations.iter().map(|one| one.without_value.as_str()).collect();
        assert_eq!(told, [expect]);
    }

    #[test]
    fn violation_message_without_value() {
        let fields = json!({ "mail": { "type": "integer" }, "name": { "maxLength": 2 } });
        let schema = json!({ "properties": fields, "required": ["mail"], "additionalProperties": false });
        let mail = "ann@example.org";
        check(
            &schema,
            &json!({ "mail": mail }),
            "`/properties/mail/type`: expected an integer, got a string",
        );
        check(
            &schema,
            &json!({ "mail": 1, "name": mail }),
            "`/properties/name/maxLength`: expected at most 2 characters, got a string",
        );
        check(&schema, &json!({}), "`/required`: expected `mail`, got nothing");
        check(
            &schema,
            &json!({ "mail": 1, mail: 2 }),
            "`/additionalProperties`: expected no other members than those declared, got an object",
        );
    }

    #[test]
    fn pattern_is_explained_by_its_examples() {
        let schema = json!({ "properties": {
            "branch": { "type": "string", "pattern": "^[a-z]+$", "examples": ["main", "dev"] },
            "tag": { "type": "string", "pattern": "^[a-z]+$" },
        } });
        check(
            &schema,
            &json!({ "branch": "-p" }),
            "`/properties/branch/pattern`: expected text such as `main` or `dev`, got a string",
        );
        check(
            &schema,
            &json!({ "tag": "-p" }),
            "`/properties/tag/pattern`: expected text in the form that the description of this argument states, got a string",
        );
    }

    /// Messages of the library name members.
    #[test]
    fn message_without_value_names_no_members() {
        let value = json!({ "ann@example.org": true });
        check(
            &json!({ "additionalProperties": { "type": "integer" } }),
            &value,
            "`/additionalProperties/type`: expected an integer, got a boolean",
        );
        for (schema, expect) in [
            (
                json!({ "unevaluatedProperties": false }),
                "`/unevaluatedProperties` is violated, got an object",
            ),
            (
                json!({ "propertyNames": { "maxLength": 2 } }),
                "`/propertyNames/maxLength` is violated, got an object",
            ),
            (json!({ "not": { "type": "object" } }), "`/not` is violated, got an object"),
            (
                json!({ "patternProperties": { "@": false } }),
                "`/patternProperties/@` is violated, got a boolean",
            ),
        ] {
            check(&schema, &value, expect);
        }
    }
}
