//! The published schemas, and explanations of violations.

mod explain;
mod violation;

use std::sync::LazyLock;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

pub(crate) use explain::explain as explain_violation;
pub use violation::Violation;

use crate::{Code, Finding, MAX_FINDINGS, Pointer};

/// A self-contained schema published in `schemas/`.
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

    /// The whole schema, including shared definitions.
    pub fn document(self) -> &'static Value {
        static DOCUMENTS: [LazyLock<Value>; 3] = [
            LazyLock::new(|| Schema::SafeToolSpec.assemble()),
            LazyLock::new(|| Schema::ToolManifest.assemble()),
            LazyLock::new(|| Schema::ToolBundle.assemble()),
        ];
        DOCUMENTS.get(self as usize).map_or(&Value::Bool(false), |document| document)
    }

    fn assemble(self) -> Value {
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
            LazyLock::new(|| compile(Schema::SafeToolSpec.document()).ok()),
            LazyLock::new(|| compile(Schema::ToolManifest.document()).ok()),
            LazyLock::new(|| compile(Schema::ToolBundle.document()).ok()),
        ];
        VALIDATORS.get(self as usize).and_then(|validator| validator.as_ref())
    }

    /// Every violation with its position.
    pub(crate) fn violations(self, document: &Value) -> Violations {
        let Some(validator) = self.validator() else {
            let ours = Finding::new(
                Code::SpecParse,
                Pointer::root(),
                "internal error: the schema does not compile",
                "report this bug",
            );
            return Violations { findings: vec![ours], is_oversized: true };
        };
        if validator.is_valid(document) {
            return Violations::default();
        }
        let mut is_oversized = false;
        let explained = validator.iter_errors(document).flat_map(|error| {
            is_oversized |= is_about_size(&error);
            explain_violation(self, &error)
        });
        let findings = explained.take(MAX_FINDINGS + 1).collect();
        Violations { findings, is_oversized }
    }
}

/// The violations of a document.
#[derive(Default)]
pub(crate) struct Violations {
    pub findings: Vec<Finding>,
    /// Whether a list is far larger than the schema allows. The document is then rejected without further checks,
    /// because some compare all pairs of entries.
    pub is_oversized: bool,
}

fn is_about_size(error: &ValidationError<'_>) -> bool {
    match error.instance().as_ref() {
        Value::Array(items) => items.len() > OVERSIZED,
        Value::Object(members) => members.len() > OVERSIZED,
        _ => false,
    }
}

/// A compiled schema of a document.
#[derive(Clone, Debug)]
pub struct CompiledSchema {
    validator: Validator,
    /// For messages; only set if the schema has examples.
    with_examples: Option<Value>,
}

impl CompiledSchema {
    pub fn new(schema: &Value) -> Result<Self, String> {
        let validator = compile(schema).map_err(|error| error.to_string())?;
        Ok(Self { validator, with_examples: has_examples(schema).then(|| schema.clone()) })
    }

    pub fn accepts(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// The violations of a value for its sender, at most `limit`.
    pub fn violations(&self, value: &Value, limit: usize) -> Vec<Violation> {
        let schema = self.with_examples.as_ref();
        self.validator.iter_errors(value).take(limit).map(|error| violation::of(&error, schema)).collect()
    }
}

fn has_examples(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.contains_key("examples") || members.values().any(has_examples),
        Value::Array(items) => items.iter().any(has_examples),
        _ => false,
    }
}

/// Compiles a schema without reading other documents, with linear-time regular expressions.
pub(crate) fn compile(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
}

fn parse(source: &str) -> Value {
    serde_json::from_str(source).unwrap_or(Value::Bool(false))
}

/// More entries than any list in our schemas allows.
const OVERSIZED: usize = 1_024;

const SHARED: &str = include_str!("../schema/shared.json");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schemas_compile() {
        for schema in Schema::ALL {
            let document = schema.document();
            assert!(jsonschema::meta::is_valid(document), "{}", schema.name());
            compile(document).unwrap();
        }
    }

    #[test]
    fn remote_reference_is_never_followed() {
        for reference in ["https://example.com/x.json", "file:///etc/passwd", "other.json"] {
            assert!(compile(&serde_json::json!({ "$ref": reference })).is_err(), "{reference}");
        }
    }
}
