//! Maps the JSON Schema of an argument to a Cedar type. Arguments that Cedar cannot express are left out, with the reason for
//! the error message of a policy that uses them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// The Cedar type of a value that matches its schema. Every such value can be converted or is rejected by name.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CedarType {
    /// A text, with its allowed values if the schema lists them.
    Text(Option<BTreeSet<String>>),
    Whole,
    Fraction,
    Flag,
    Many(Box<CedarType>),
    Record(CedarRecord),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CedarRecord {
    pub members: BTreeMap<String, CedarMember>,
    /// Declared members that Cedar cannot express, with the reason.
    pub unseen: BTreeMap<String, &'static str>,
    /// True if a value may have undeclared members.
    pub is_open: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct CedarMember {
    pub kind: CedarType,
    pub presence: Presence,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Presence {
    Always,
    /// Optional or nullable. Cedar has no null, so null counts as absent.
    Maybe,
}

impl CedarType {
    /// In Cedar's JSON schema format.
    pub fn to_schema(&self) -> Map<String, Value> {
        let mut schema = Map::new();
        let name = match self {
            Self::Text(_) => "String",
            Self::Whole => "Long",
            Self::Flag => "Boolean",
            Self::Fraction => {
                schema.insert("name".into(), "decimal".into());
                "Extension"
            }
            Self::Many(item) => {
                schema.insert("element".into(), item.to_schema().into());
                "Set"
            }
            Self::Record(record) => return record.to_schema(),
        };
        schema.insert("type".into(), name.into());
        schema
    }

    /// True if a policy sees the complete value. Only then may it compare the value as a whole.
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Text(_) | Self::Whole | Self::Fraction | Self::Flag => true,
            Self::Many(item) => item.is_whole(),
            Self::Record(record) => record.is_whole(),
        }
    }
}

impl CedarRecord {
    /// The arguments of a tool, from its input schema.
    pub fn of_input(schema: &Value) -> Self {
        match schema {
            Value::Object(schema) => of_object(schema, 0),
            _ => Self { is_open: true, ..Self::default() },
        }
    }

    pub fn to_schema(&self) -> Map<String, Value> {
        let attributes: Map<String, Value> = self
            .members
            .iter()
            .map(|(name, member)| {
                let mut schema = member.kind.to_schema();
                schema.insert("required".into(), (member.presence == Presence::Always).into());
                (name.clone(), schema.into())
            })
            .collect();
        let mut schema = Map::new();
        schema.insert("type".into(), "Record".into());
        schema.insert("attributes".into(), attributes.into());
        schema
    }

    pub fn is_whole(&self) -> bool {
        !self.is_open && self.unseen.is_empty() && self.members.values().all(|member| member.kind.is_whole())
    }
}

/// A type, and whether null is allowed too.
struct Read {
    kind: CedarType,
    takes_null: bool,
}

fn read(schema: &Value, depth: usize) -> Result<Read, &'static str> {
    let Value::Object(schema) = schema else { return Err(ANYTHING) };
    if depth > MAX_DEPTH {
        return Err("its schema is nested too deeply");
    }
    if let Some(kind) = schema.get("type") {
        return read_typed(schema, kind, depth);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return of_values(values);
    }
    if let Some(value) = schema.get("const") {
        return of_values(std::slice::from_ref(value));
    }
    if let Some(all) = schema.get("allOf").and_then(Value::as_array) {
        return of_all(all, depth);
    }
    match schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        Some(choices) => of_choices(choices, depth),
        None => Err(ANYTHING),
    }
}

fn read_typed(schema: &Map<String, Value>, kind: &Value, depth: usize) -> Result<Read, &'static str> {
    let names: Vec<&str> = match kind {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => return Err(ANYTHING),
    };
    let takes_null = names.contains(&"null");
    let others: BTreeSet<&str> = names.into_iter().filter(|name| *name != "null").collect();
    let kind = match others.into_iter().collect::<Vec<_>>().as_slice() {
        ["string"] => CedarType::Text(allowed_texts(schema)),
        ["integer"] => CedarType::Whole,
        ["number"] | ["integer", "number"] => CedarType::Fraction,
        ["boolean"] => CedarType::Flag,
        ["array"] => of_array(schema, depth)?,
        ["object"] => of_map(schema, depth)?,
        [] => return Err("it allows only null"),
        _ => return Err(SEVERAL),
    };
    Ok(Read { kind, takes_null })
}

fn allowed_texts(schema: &Map<String, Value>) -> Option<BTreeSet<String>> {
    let texts = match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) => values.as_slice(),
        (_, Some(value)) => std::slice::from_ref(value),
        _ => return None,
    };
    Some(texts.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn of_array(schema: &Map<String, Value>, depth: usize) -> Result<CedarType, &'static str> {
    if schema.contains_key("prefixItems") || schema.get("items").is_some_and(Value::is_array) {
        return Err("its items have a type per position, and a Cedar set has no positions");
    }
    let items = schema.get("items").ok_or("its schema does not define its items")?;
    let item = read(items, depth + 1).map_err(|_| "its items have no single type that Cedar can express")?;
    if item.takes_null {
        return Err("its items may be null, and Cedar has no null");
    }
    Ok(CedarType::Many(Box::new(item.kind)))
}

fn of_map(schema: &Map<String, Value>, depth: usize) -> Result<CedarType, &'static str> {
    let has_members =
        schema.get("properties").and_then(Value::as_object).is_some_and(|members| !members.is_empty());
    if has_members || schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        Ok(CedarType::Record(of_object(schema, depth)))
    } else {
        Err("it is an object without declared members")
    }
}

fn of_object(schema: &Map<String, Value>, depth: usize) -> CedarRecord {
    let mut record = CedarRecord {
        is_open: schema.get("additionalProperties") != Some(&Value::Bool(false))
            || schema.contains_key("patternProperties"),
        ..CedarRecord::default()
    };
    let required: BTreeSet<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        match read(schema, depth + 1) {
            Ok(Read { kind, takes_null }) => {
                let is_sure = required.contains(name.as_str()) && !takes_null;
                let presence = if is_sure { Presence::Always } else { Presence::Maybe };
                record.members.insert(name.clone(), CedarMember { kind, presence });
            }
            Err(why) => drop(record.unseen.insert(name.clone(), why)),
        }
    }
    record
}

/// The type of an `enum`, whose values may have any type.
fn of_values(values: &[Value]) -> Result<Read, &'static str> {
    let takes_null = values.iter().any(Value::is_null);
    let rest: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
    let all = |fits: fn(&Value) -> bool| rest.iter().all(|value| fits(value));
    let kind = if rest.is_empty() {
        return Err("it allows only null");
    } else if all(Value::is_string) {
        CedarType::Text(Some(rest.iter().filter_map(|value| value.as_str()).map(str::to_owned).collect()))
    } else if all(Value::is_boolean) {
        CedarType::Flag
    } else if all(Value::is_i64) {
        CedarType::Whole
    } else if all(Value::is_number) {
        CedarType::Fraction
    } else {
        return Err(SEVERAL);
    };
    Ok(Read { kind, takes_null })
}

/// `allOf`: a value matches all schemas, so the first one with a type defines it. The others may declare further members.
fn of_all(schemas: &[Value], depth: usize) -> Result<Read, &'static str> {
    let mut found = schemas.iter().find_map(|schema| read(schema, depth + 1).ok()).ok_or(ANYTHING)?;
    if let CedarType::Record(record) = &mut found.kind {
        record.is_open |= schemas.len() > 1;
    }
    Ok(found)
}

/// `anyOf` and `oneOf`: one choice that is not null, or several of the same type.
fn of_choices(choices: &[Value], depth: usize) -> Result<Read, &'static str> {
    let is_null = |schema: &&Value| {
        schema.get("type") == Some(&json!("null")) || schema.get("const") == Some(&Value::Null)
    };
    let takes_null = choices.iter().any(|choice| is_null(&choice));
    let mut found: Option<Read> = None;
    for choice in choices.iter().filter(|choice| !is_null(choice)) {
        let next = read(choice, depth + 1).map_err(|_| SEVERAL)?;
        found = Some(match found {
            None => next,
            Some(found) => {
                Read { kind: joined(found.kind, next.kind)?, takes_null: found.takes_null || next.takes_null }
            }
        });
    }
    let found = found.ok_or("it allows only null")?;
    Ok(Read { takes_null: found.takes_null || takes_null, ..found })
}

fn joined(one: CedarType, other: CedarType) -> Result<CedarType, &'static str> {
    match (one, other) {
        (CedarType::Text(Some(mut one)), CedarType::Text(Some(other))) => {
            one.extend(other);
            Ok(CedarType::Text(Some(one)))
        }
        (CedarType::Text(_), CedarType::Text(_)) => Ok(CedarType::Text(None)),
        (one, other) if one == other => Ok(one),
        _ => Err(SEVERAL),
    }
}

const ANYTHING: &str = "its schema does not define its type";

const SEVERAL: &str = "its values may have several types";

/// The depth of schemas; the same as in projections.
const MAX_DEPTH: usize = 32;
