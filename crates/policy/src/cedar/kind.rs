//! Of which Cedar type is an argument? Read from the tool's own JSON Schema. What Cedar cannot express is left out, with
//! the reason, so that a policy that names it can be told.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// The type of a value that fits its schema. Made so that every such value can be converted, or is refused by name.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// With the only texts that fit, where the schema lists them.
    Text(Option<BTreeSet<String>>),
    Whole,
    Fraction,
    Flag,
    Many(Box<Kind>),
    Record(Record),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Record {
    pub members: BTreeMap<String, Member>,
    /// Declared, but not to be expressed, and why.
    pub unseen: BTreeMap<String, &'static str>,
    /// May a value have members that are not declared?
    pub is_open: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub kind: Kind,
    pub presence: Presence,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Presence {
    Always,
    /// Optional, or null: Cedar has no null, so a null counts as absent.
    Maybe,
}

impl Kind {
    /// As Cedar's JSON schema format writes it.
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

    /// Does a policy see all there is? Only then may it compare the value as a whole.
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Text(_) | Self::Whole | Self::Fraction | Self::Flag => true,
            Self::Many(item) => item.is_whole(),
            Self::Record(record) => record.is_whole(),
        }
    }
}

impl Record {
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

/// A kind, and whether null fits too.
struct Read {
    kind: Kind,
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
        ["string"] => Kind::Text(allowed_texts(schema)),
        ["integer"] => Kind::Whole,
        ["number"] | ["integer", "number"] => Kind::Fraction,
        ["boolean"] => Kind::Flag,
        ["array"] => of_array(schema, depth)?,
        ["object"] => of_map(schema, depth)?,
        [] => return Err("only null fits it"),
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

fn of_array(schema: &Map<String, Value>, depth: usize) -> Result<Kind, &'static str> {
    if schema.contains_key("prefixItems") || schema.get("items").is_some_and(Value::is_array) {
        return Err("its items have a type for each place, and a Cedar set has no places");
    }
    let items = schema.get("items").ok_or("its schema does not say what its items are")?;
    let item = read(items, depth + 1).map_err(|_| "its items have no single type that Cedar can express")?;
    if item.takes_null {
        return Err("its items may be null, and Cedar has no null");
    }
    Ok(Kind::Many(Box::new(item.kind)))
}

fn of_map(schema: &Map<String, Value>, depth: usize) -> Result<Kind, &'static str> {
    let has_members =
        schema.get("properties").and_then(Value::as_object).is_some_and(|members| !members.is_empty());
    if has_members || schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        Ok(Kind::Record(of_object(schema, depth)))
    } else {
        Err("it is an object without declared members")
    }
}

fn of_object(schema: &Map<String, Value>, depth: usize) -> Record {
    let mut record = Record {
        is_open: schema.get("additionalProperties") != Some(&Value::Bool(false))
            || schema.contains_key("patternProperties"),
        ..Record::default()
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
                record.members.insert(name.clone(), Member { kind, presence });
            }
            Err(why) => drop(record.unseen.insert(name.clone(), why)),
        }
    }
    record
}

/// A list of values, each of which may be meant.
fn of_values(values: &[Value]) -> Result<Read, &'static str> {
    let takes_null = values.iter().any(Value::is_null);
    let rest: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
    let all = |fits: fn(&Value) -> bool| rest.iter().all(|value| fits(value));
    let kind = if rest.is_empty() {
        return Err("only null fits it");
    } else if all(Value::is_string) {
        Kind::Text(Some(rest.iter().filter_map(|value| value.as_str()).map(str::to_owned).collect()))
    } else if all(Value::is_boolean) {
        Kind::Flag
    } else if all(Value::is_i64) {
        Kind::Whole
    } else if all(Value::is_number) {
        Kind::Fraction
    } else {
        return Err(SEVERAL);
    };
    Ok(Read { kind, takes_null })
}

/// A value fits all of them, so the first that has a type tells it; the others may know members that this one does not.
fn of_all(schemas: &[Value], depth: usize) -> Result<Read, &'static str> {
    let mut found = schemas.iter().find_map(|schema| read(schema, depth + 1).ok()).ok_or(ANYTHING)?;
    if let Kind::Record(record) = &mut found.kind {
        record.is_open |= schemas.len() > 1;
    }
    Ok(found)
}

/// Of several forms, one that is not null; or all of the same type.
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
    let found = found.ok_or("only null fits it")?;
    Ok(Read { takes_null: found.takes_null || takes_null, ..found })
}

fn joined(one: Kind, other: Kind) -> Result<Kind, &'static str> {
    match (one, other) {
        (Kind::Text(Some(mut one)), Kind::Text(Some(other))) => {
            one.extend(other);
            Ok(Kind::Text(Some(one)))
        }
        (Kind::Text(_), Kind::Text(_)) => Ok(Kind::Text(None)),
        (one, other) if one == other => Ok(one),
        _ => Err(SEVERAL),
    }
}

const ANYTHING: &str = "its schema gives it no type";

const SEVERAL: &str = "its values may have several types";

/// Levels of schemas; as many as a projection lets through.
const MAX_DEPTH: usize = 32;
