//! The published schemas, and what a document's violations of them mean to its author.

use std::sync::LazyLock;

use jsonschema::{
    PatternOptions, ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind},
};
use serde_json::{Map, Value};

use crate::{Code, Finding, Pointer};

/// A schema that we publish in `schemas/`, self-contained.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Schema {
    SafeToolSpec,
    ToolManifest,
    ToolBundle,
}

impl Schema {
    pub const ALL: [Self; 3] = [Self::SafeToolSpec, Self::ToolManifest, Self::ToolBundle];

    pub const fn name(self) -> &'static str {
        match self {
            Self::SafeToolSpec => "safe-tool-spec",
            Self::ToolManifest => "tool-manifest",
            Self::ToolBundle => "tool-bundle",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|schema| schema.name() == name)
    }

    /// The whole schema, with the definitions it shares with the others.
    pub fn document(self) -> Value {
        let mut schema = parse(self.source());
        if let Value::Object(schema) = &mut schema
            && self != Self::ToolBundle
            && let Value::Object(definitions) =
                schema.entry("$defs").or_insert_with(|| Value::Object(Map::new()))
            && let Value::Object(shared) = parse(SHARED)
        {
            definitions.extend(shared);
        }
        schema
    }

    const fn source(self) -> &'static str {
        match self {
            Self::SafeToolSpec => include_str!("../schema/safe-tool-spec.json"),
            Self::ToolManifest => include_str!("../schema/tool-manifest.json"),
            Self::ToolBundle => include_str!("../schema/tool-bundle.json"),
        }
    }

    fn validator(self) -> Option<&'static Validator> {
        static VALIDATORS: [LazyLock<Option<Validator>>; 3] = [
            LazyLock::new(|| compile(&Schema::SafeToolSpec.document()).ok()),
            LazyLock::new(|| compile(&Schema::ToolManifest.document()).ok()),
            LazyLock::new(|| compile(&Schema::ToolBundle.document()).ok()),
        ];
        VALIDATORS.get(self as usize).and_then(|validator| validator.as_ref())
    }

    /// Every violation, each with its place.
    pub(crate) fn violations(self, document: &Value) -> Vec<Finding> {
        let Some(validator) = self.validator() else {
            return vec![Finding::new(
                Code::SpecParse,
                Pointer::root(),
                "our own schema does not compile",
                "report this; it is our fault",
            )];
        };
        if validator.is_valid(document) {
            return Vec::new();
        }
        validator.iter_errors(document).flat_map(|error| explain(&error)).collect()
    }
}

/// Compiles a schema without ever reading another document, and with regular expressions that cannot run away.
pub fn compile(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
}

pub(crate) fn explain(error: &ValidationError<'_>) -> Vec<Finding> {
    let at = Pointer::new(error.instance_path().as_str());
    let say =
        |message: String, remedy: String| vec![Finding::new(Code::SpecParse, at.clone(), message, remedy)];
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            unexpected.iter().map(|key| unknown_key(&at, key, &known_keys(error))).collect()
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let remedy = match name {
                "testValue" => "give `testValue` the text that the test run shall use; a required parameter is tested with it".into(),
                _ => format!("add `{name}`"),
            };
            say(format!("`{name}` is missing"), remedy)
        }
        ValidationErrorKind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(one) => one.to_string(),
                TypeKind::Multiple(several) => {
                    several.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(" or ")
                }
            };
            say(
                format!("{} where {expected} is expected", describe(error.instance())),
                format!("write {expected}"),
            )
        }
        ValidationErrorKind::Enum { options } => {
            let options: Vec<String> =
                options.as_array().into_iter().flatten().map(ToString::to_string).collect();
            say(
                format!("{} is none of the known values", describe(error.instance())),
                format!("write one of {}", options.join(", ")),
            )
        }
        ValidationErrorKind::MaxItems { limit } => {
            say(format!("more than {limit} entries"), format!("keep at most {limit}"))
        }
        ValidationErrorKind::MaxLength { limit } => {
            say(format!("longer than {limit} characters"), format!("keep it within {limit} characters"))
        }
        ValidationErrorKind::MinLength { .. } => {
            say("empty text".into(), "write at least one character".into())
        }
        ValidationErrorKind::MinProperties { limit } | ValidationErrorKind::MaxProperties { limit } => say(
            format!("{} where {limit} is the limit", count_of_members(error.instance())),
            format!("write an object with {limit} member"),
        ),
        ValidationErrorKind::Pattern { pattern } => say(
            format!("{} does not have the expected form", describe(error.instance())),
            format!("it must match `{pattern}`"),
        ),
        _ => say(error.to_string(), "see the schema: `toolgate schema`".into()),
    }
}

fn unknown_key(at: &Pointer, key: &str, known: &[String]) -> Finding {
    let remedy = match crate::similar::closest(key, known.iter().map(String::as_str)) {
        Some(close) => format!("did you mean `{close}`?"),
        None if known.is_empty() => "remove it".into(),
        None => format!("remove it; known here: {}", known.join(", ")),
    };
    Finding::new(Code::SpecParse, at.key(key), format!("unknown key `{}`", shorten(key)), remedy).at_key()
}

/// The properties that the violated part of the schema knows, found by its own path.
fn known_keys(error: &ValidationError<'_>) -> Vec<String> {
    let path = error.schema_path().as_str();
    let holder = path.strip_suffix("/additionalProperties").unwrap_or(path);
    Schema::ALL
        .into_iter()
        .find_map(|schema| {
            let document = schema.document();
            let properties = document.pointer(holder)?.get("properties")?.as_object()?;
            Some(properties.keys().cloned().collect::<Vec<_>>())
        })
        .unwrap_or_default()
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
        Value::String(text) => format!("\"{}\"", shorten(text)),
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
    }
}

fn count_of_members(value: &Value) -> String {
    match value.as_object().map_or(0, Map::len) {
        1 => "1 member".into(),
        count => format!("{count} members"),
    }
}

fn shorten(text: &str) -> String {
    const MOST: usize = 40;
    let clean: String =
        text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(MOST + 1).collect();
    if clean.chars().count() > MOST { clean.chars().take(MOST).chain("…".chars()).collect() } else { clean }
}

fn parse(source: &str) -> Value {
    serde_json::from_str(source).unwrap_or(Value::Bool(false))
}

const SHARED: &str = include_str!("../schema/shared.json");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_schemas_are_schemas_and_compile() {
        for schema in Schema::ALL {
            let document = schema.document();
            assert!(jsonschema::meta::is_valid(&document), "{}", schema.name());
            compile(&document).unwrap();
        }
    }

    #[test]
    fn a_reference_to_another_document_is_never_followed() {
        for reference in ["https://example.com/x.json", "file:///etc/passwd", "other.json"] {
            assert!(compile(&serde_json::json!({ "$ref": reference })).is_err(), "{reference}");
        }
    }
}
