//! What is wrong with a value, in words for a model that is to send a better one?

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};
use serde_json::Value;

use super::explain::{describe, expected_types, shorten};

/// One thing that is wrong with a value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    /// A JSON pointer into the value; empty for the value itself.
    pub at: String,
    pub expected: String,
    pub came: String,
}

pub(super) fn of(error: &ValidationError<'_>) -> Violation {
    let at = shorten(error.instance_path().as_str(), 200);
    let (expected, came) = words(error);
    Violation { at, expected: shorten(&expected, 300), came: shorten(&came, 120) }
}

fn words(error: &ValidationError<'_>) -> (String, String) {
    let instance = error.instance();
    let came = || describe(instance);
    match error.kind() {
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
        Kind::Pattern { pattern } => (format!("text that matches `{pattern}`"), came()),
        Kind::Format { format } => (format!("text in the format `{format}`"), came()),
        Kind::UniqueItems => ("entries that are all different".to_owned(), "one of them twice".to_owned()),
        _ => (error.masked().to_string(), came()),
    }
}

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
