//! Expands references in a schema and removes identifiers and private remarks. References are followed only inside
//! the document, with a budget, because a small schema could expand to a huge one.
//!
//! The MCP listing keeps `$schema`, `$anchor` and the `$defs` that the schema refers to.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::ProjectError;
use crate::Pointer;

/// Expands the arguments schema: always an object, closed unless it says otherwise.
pub(super) fn input(schema: &Value) -> Result<Value, ProjectError> {
    Expander::new("input", schema).root().map(closed)
}

/// Like `input`, for the MCP listing.
pub(super) fn listed_input(schema: &Value) -> Result<Value, ProjectError> {
    let (flat, dialect) = Expander::new("input", schema).listed()?;
    Ok(with_dialect(closed(flat), dialect))
}

pub(super) fn listed_output(schema: &Value) -> Result<Value, ProjectError> {
    let (flat, dialect) = Expander::new("output", schema).listed()?;
    Ok(with_dialect(Value::Object(flat), dialect))
}

/// Rejects keywords that function calling does not allow at the top of a schema.
pub(super) fn check_top(schema: &Value) -> Result<(), ProjectError> {
    match NOT_AT_TOP.into_iter().find(|keyword| schema.get(keyword).is_some()) {
        None => Ok(()),
        Some(keyword) => Err(ProjectError {
            at: format!("input/{keyword}"),
            message: format!("function calling does not support `{keyword}` at the top of a schema"),
        }),
    }
}

fn with_dialect(schema: Value, dialect: Map<String, Value>) -> Value {
    match schema {
        Value::Object(mut members) => {
            members.extend(dialect);
            Value::Object(members)
        }
        other => other,
    }
}

fn closed(mut flat: Map<String, Value>) -> Value {
    let properties = flat.shift_remove("properties").unwrap_or_else(|| Map::new().into());
    let required = flat.shift_remove("required").filter(|required| required != &Value::Array(Vec::new()));
    let open = flat.shift_remove("additionalProperties").unwrap_or(Value::Bool(false));
    let mut object = Map::new();
    object.insert("type".into(), "object".into());
    object.insert("properties".into(), properties);
    if let Some(required) = required {
        object.insert("required".into(), required);
    }
    object.insert("additionalProperties".into(), open);
    flat.shift_remove("type");
    object.extend(flat);
    Value::Object(object)
}

type SchemaMembers = Map<String, Value>;

struct Expander<'schema> {
    block: &'static str,
    root: &'schema Value,
    /// The references currently being followed, outermost first.
    following: Vec<String>,
    bytes_left: usize,
    /// Names under `$defs` that are referred to.
    used: BTreeSet<String>,
    /// Whether to keep `$anchor`. A copy of a definition must not repeat the anchor of the original.
    keeps_anchors: bool,
}

impl<'schema> Expander<'schema> {
    fn new(block: &'static str, root: &'schema Value) -> Self {
        let used = BTreeSet::new();
        Self { block, root, following: Vec::new(), bytes_left: MAX_BYTES, used, keeps_anchors: false }
    }

    /// The schema, and the keywords for reading it: `$schema` and `$defs`.
    fn listed(mut self) -> Result<(SchemaMembers, SchemaMembers), ProjectError> {
        self.keeps_anchors = true;
        let flat = self.root()?;
        let mut dialect = Map::new();
        if let Some(schema) = self.root.get("$schema") {
            dialect.insert("$schema".into(), schema.clone());
        }
        // References are already expanded, so definitions that are too large can be left out.
        if let Ok(definitions) = self.definitions()
            && !definitions.is_empty()
        {
            dialect.insert("$defs".into(), Value::Object(definitions));
        }
        Ok((flat, dialect))
    }

    /// Only definitions that are referred to. Others may contain text that models should not read.
    fn definitions(&mut self) -> Result<Map<String, Value>, ProjectError> {
        let (root, used) = (self.root, std::mem::take(&mut self.used));
        self.bytes_left = MAX_BYTES;
        let all = root.get("$defs").and_then(Value::as_object).into_iter().flatten();
        let mut definitions = Map::new();
        for (name, definition) in all.filter(|(name, _)| used.contains(*name)) {
            let at = Pointer::root().key("$defs").key(name);
            self.following.push(at.as_str().to_owned());
            definitions.insert(name.clone(), self.schema(definition, &at, 1)?);
            self.following.pop();
        }
        Ok(definitions)
    }

    fn root(&mut self) -> Result<Map<String, Value>, ProjectError> {
        let at = Pointer::root();
        let Value::Object(flat) = self.schema(self.root, &at, 0)? else {
            return Err(self.error(&at, "the schema is not an object"));
        };
        match flat.get("type") {
            None => Ok(flat),
            Some(Value::String(kind)) if kind == "object" => Ok(flat),
            Some(Value::Array(kinds)) if kinds.as_slice() == [Value::from("object")] => Ok(flat),
            Some(other) => Err(self.error(&at.key("type"), &format!("`{other}` where \"object\" is needed"))),
        }
    }

    fn schema(&mut self, schema: &Value, at: &Pointer, depth: usize) -> Result<Value, ProjectError> {
        if depth > MAX_DEPTH {
            return Err(self.error(at, &format!("nested deeper than {MAX_DEPTH} levels")));
        }
        let Value::Object(members) = schema else { return self.charge(schema, at) };
        let mut flat = Map::new();
        for (keyword, value) in members {
            let is_kept_anchor = keyword == "$anchor" && self.keeps_anchors;
            if (is_private(keyword) && !is_kept_anchor) || keyword == "$ref" {
                continue;
            }
            let at = at.key(keyword);
            self.spend(keyword.len() + 4, &at)?;
            flat.insert(keyword.clone(), self.keyword(keyword, value, &at, depth + 1)?);
        }
        match members.get("$ref") {
            Some(reference) => self.follow(reference, flat, at, depth),
            None => Ok(Value::Object(flat)),
        }
    }

    /// Expands only keywords that hold schemas: a property may be called `$defs`.
    fn keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        at: &Pointer,
        depth: usize,
    ) -> Result<Value, ProjectError> {
        match (keyword, value) {
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(schemas)) => {
                let mut flat = Map::new();
                for (name, schema) in schemas {
                    self.spend(name.len() + 4, at)?;
                    flat.insert(name.clone(), self.schema(schema, &at.key(name), depth)?);
                }
                Ok(Value::Object(flat))
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                let schemas = schemas.iter().enumerate();
                schemas.map(|(index, schema)| self.schema(schema, &at.index(index), depth)).collect()
            }
            (keyword, _) if HOLDS_ONE_SCHEMA.contains(&keyword) => self.schema(value, at, depth),
            ("$dynamicRef" | "$recursiveRef", _) => {
                Err(self.error(at, "only `$ref` within the document can be followed"))
            }
            _ => self.charge(value, at),
        }
    }

    /// The target of a reference, combined with the keywords next to it.
    fn follow(
        &mut self,
        reference: &Value,
        beside: Map<String, Value>,
        at: &Pointer,
        depth: usize,
    ) -> Result<Value, ProjectError> {
        let at = at.key("$ref");
        let pointer = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
        let Some(pointer) = pointer.filter(|pointer| pointer.is_empty() || pointer.starts_with('/')) else {
            return Err(self.error(&at, &format!("{reference} does not point into this schema")));
        };
        if self.following.iter().any(|open| open == pointer) || pointer.is_empty() {
            return Err(self.error(&at, &format!("`#{pointer}` contains itself")));
        }
        let Some(target) = self.root.pointer(pointer) else {
            return Err(self.error(&at, &format!("there is no `#{pointer}` in this schema")));
        };
        if let [block, name, ..] = Pointer::new(pointer).tokens().as_slice()
            && block == "$defs"
        {
            self.used.insert(name.clone());
        }
        self.following.push(pointer.to_owned());
        let keeps_anchors = std::mem::replace(&mut self.keeps_anchors, false);
        let flat = self.schema(target, &Pointer::new(pointer), depth + 1)?;
        self.keeps_anchors = keeps_anchors;
        self.following.pop();
        Ok(combined(flat, beside))
    }

    fn charge(&mut self, value: &Value, at: &Pointer) -> Result<Value, ProjectError> {
        self.spend(value.to_string().len(), at)?;
        Ok(value.clone())
    }

    fn spend(&mut self, bytes: usize, at: &Pointer) -> Result<(), ProjectError> {
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                Ok(())
            }
            None => {
                Err(self.error(at, &format!("the schema without references has more than {MAX_BYTES} bytes")))
            }
        }
    }

    fn error(&self, at: &Pointer, message: &str) -> ProjectError {
        ProjectError { at: format!("{}{}", self.block, at.as_str()), message: message.to_owned() }
    }
}

/// Annotations next to a reference win over those of the target; constraints apply together with the target.
fn combined(target: Value, beside: Map<String, Value>) -> Value {
    if beside.keys().all(|keyword| REMARKS.contains(&keyword.as_str())) {
        return match target {
            Value::Object(mut members) => {
                members.extend(beside);
                Value::Object(members)
            }
            other => other,
        };
    }
    let mut both = beside;
    match both.get_mut("allOf") {
        Some(Value::Array(all)) => all.push(target),
        _ => drop(both.insert("allOf".into(), Value::Array(vec![target]))),
    }
    Value::Object(both)
}

/// Keywords for authors and validators. They do not help a model and may contain private text.
fn is_private(keyword: &str) -> bool {
    NOT_FOR_MODELS.contains(&keyword) || keyword.starts_with("x-")
}

const NOT_FOR_MODELS: [&str; 10] = [
    "$defs",
    "definitions",
    "$schema",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$comment",
    "$vocabulary",
    "examples",
    "example",
];

const REMARKS: [&str; 6] = ["title", "description", "default", "deprecated", "readOnly", "writeOnly"];

const HOLDS_ONE_SCHEMA: [&str; 11] = [
    "items",
    "additionalProperties",
    "additionalItems",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Anthropic and OpenAI reject these at the top; some MCP clients silently drop the tool.
const NOT_AT_TOP: [&str; 6] = ["oneOf", "anyOf", "allOf", "not", "enum", "const"];

const MAX_BYTES: usize = 64 * 1024;

/// Schema levels, including references.
const MAX_DEPTH: usize = 32;
