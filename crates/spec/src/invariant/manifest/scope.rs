//! The names that templates may use, and their types.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{
    Pointer,
    model::{ParamType, ToolSpec},
};

pub(super) struct TemplateScope {
    pub variables: Vec<Variable>,
    /// The index in `variables` of each name. A map, because a document may use many names many times.
    by_name: HashMap<String, usize>,
    statics: Vec<Static>,
}

/// A value that a caller may send.
pub(super) struct Variable {
    pub name: String,
    pub shape: ValueShape,
    pub is_required: bool,
    pub at: Pointer,
    /// For an array: whether an element is one plain value.
    pub has_plain_items: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ValueShape {
    Text,
    Boolean,
    /// A number or an enumeration, which cannot carry arbitrary text.
    Plain,
    Array,
    Object,
    /// The schema does not say, so the value may be anything.
    Unknown,
}

struct Static {
    name: String,
    is_secret: bool,
}

/// The meaning of a name in a template.
pub(super) enum NameMeaning<'s> {
    Caller(&'s Variable),
    Operator { is_secret: bool },
}

impl TemplateScope {
    pub fn of(document: &Map<String, Value>, spec: &ToolSpec) -> Self {
        let from_params = spec.params.iter().enumerate().map(|(index, param)| Variable {
            name: param.name.clone(),
            shape: ValueShape::of_param(param.kind),
            is_required: param.required,
            at: Pointer::new("/params").index(index),
            has_plain_items: true,
        });
        let input = document.get("input").filter(|_| document.contains_key("handler"));
        let statics = spec.effective_statics().into_iter();
        let variables: Vec<Variable> = from_params.chain(input.into_iter().flat_map(from_input)).collect();
        // In reverse, because the first of two entries counts.
        let names = variables.iter().enumerate().rev();
        Self {
            by_name: names.map(|(index, variable)| (variable.name.clone(), index)).collect(),
            variables,
            statics: statics
                .map(|variable| Static {
                    name: variable.name.clone(),
                    is_secret: !variable.value.is_literal(),
                })
                .collect(),
        }
    }

    pub fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.get(*self.by_name.get(name)?)
    }

    /// A static variable hides a parameter of the same name.
    pub fn meaning(&self, name: &str) -> Option<NameMeaning<'_>> {
        let fixed = self.statics.iter().find(|fixed| fixed.name == name);
        fixed
            .map(|fixed| NameMeaning::Operator { is_secret: fixed.is_secret })
            .or_else(|| self.variable(name).map(NameMeaning::Caller))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        let fixed = self.statics.iter().map(|fixed| fixed.name.as_str());
        self.variable_names().chain(fixed)
    }

    /// Names of values that a caller may send.
    pub fn variable_names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|variable| variable.name.as_str())
    }
}

fn from_input(input: &Value) -> Vec<Variable> {
    let required: Vec<&str> = input
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = input.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties
        .map(|(name, schema)| {
            let schema = resolved(schema, input);
            let items = schema.get("items").map(|items| resolved(items, input));
            Variable {
                name: name.clone(),
                shape: ValueShape::of_schema(schema),
                is_required: required.contains(&name.as_str()),
                at: Pointer::new("/input/properties").key(name),
                has_plain_items: items.is_some_and(|items| ValueShape::of_schema(items).is_plain()),
            }
        })
        .collect()
}

/// Resolves a reference. If the chain is too long or broken, the type stays unknown.
fn resolved<'s>(schema: &'s Value, root: &'s Value) -> &'s Value {
    let mut here = schema;
    for _ in 0..MAX_HOPS {
        let target = here.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        match target.and_then(|inside| root.pointer(inside)) {
            Some(next) => here = next,
            None => break,
        }
    }
    here
}

impl ValueShape {
    /// Whether the value can be written as one piece of text.
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Text | Self::Boolean | Self::Plain)
    }

    fn of_param(kind: ParamType) -> Self {
        match kind {
            ParamType::String => Self::Text,
            ParamType::Integer | ParamType::Number => Self::Plain,
            ParamType::Boolean => Self::Boolean,
            ParamType::Object => Self::Object,
            ParamType::Array => Self::Array,
        }
    }

    fn of_schema(schema: &Value) -> Self {
        let is_scalar = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
        let options = schema.get("enum").and_then(Value::as_array);
        if schema.get("const").is_some_and(is_scalar)
            || options.is_some_and(|options| !options.is_empty() && options.iter().all(is_scalar))
        {
            return Self::Plain;
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("string") => Self::Text,
            Some("integer" | "number") => Self::Plain,
            Some("boolean") => Self::Boolean,
            Some("array") => Self::Array,
            Some("object") => Self::Object,
            _ => Self::Unknown,
        }
    }
}

const MAX_HOPS: usize = 8;
