//! Checks that a JSON Schema compiles, that clients understand it, and that it cannot exhaust resources.

use jsonschema::Validator;
use serde_json::Value;

use super::{references, regular_expression, report::ManifestReport};
use crate::Pointer;

/// Checks a schema and compiles it if it is valid.
pub(super) fn check(schema: &Value, at: &Pointer, report: &mut ManifestReport<'_>) -> Option<Validator> {
    if let Some(why) = too_large(schema) {
        report.add(at, why, "keep the schema small; a model has to read it");
        return None;
    }
    let mut faults = Vec::new();
    for error in jsonschema::draft202012::meta::validator().iter_errors(schema) {
        let place = Pointer::new(error.instance_path().as_str()).within(at);
        faults.push((
            place,
            format!("not JSON Schema 2020-12: {}", shorten(&error.to_string())),
            "see https://json-schema.org/draft/2020-12".to_owned(),
        ));
    }
    if faults.is_empty() {
        let mut patterns = 0;
        keywords(schema, at, Level::Top, &mut patterns, &mut faults);
        references::check(schema, at, &mut faults);
    }
    if faults.is_empty() {
        match crate::schema::compile(schema) {
            Ok(validator) => return Some(validator),
            Err(error) => faults.push((
                // For a regular expression, the engine reports the position in the schema as the "instance".
                Pointer::new(error.instance_path().as_str()).within(at),
                format!("the schema does not compile: {}", shorten(&error.to_string())),
                "patterns are linear: no look-around and no backreferences".to_owned(),
            )),
        }
    }
    for (place, message, remedy) in faults {
        report.add(&place, message, remedy);
    }
    None
}

/// Position, message and remedy.
pub(super) type SchemaFault = (Pointer, String, String);

/// The direct subschemas, each with its position.
pub(super) fn children<'s>(schema: &'s Value, at: &Pointer) -> Vec<(Pointer, &'s Value)> {
    let mut found = Vec::new();
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let place = at.key(keyword);
        match (keyword.as_str(), value) {
            (one, value) if ONE_SCHEMA.contains(&one) => found.push((place, value)),
            (many, Value::Array(items)) if SCHEMA_LISTS.contains(&many) => {
                found.extend(items.iter().enumerate().map(|(index, item)| (place.index(index), item)));
            }
            (many, Value::Object(members)) if SCHEMA_MAPS.contains(&many) => {
                found.extend(members.iter().map(|(key, member)| (place.key(key), member)));
            }
            _ => {}
        }
    }
    found
}

/// Whether the `type` of a schema allows this type.
pub(super) fn leaves_open(declared: Option<&Value>, wanted: &str) -> bool {
    match declared {
        Some(Value::String(only)) => only == wanted,
        Some(Value::Array(types)) => types.iter().any(|one| one == wanted),
        _ => true,
    }
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Level {
    Top,
    Inside,
}

/// Rejects unknown keywords: a misspelt `requried` would silently accept everything.
fn keywords(schema: &Value, at: &Pointer, level: Level, patterns: &mut usize, faults: &mut Vec<SchemaFault>) {
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let place = at.key(keyword);
        match keyword.as_str() {
            "$schema" if level == Level::Top && value.as_str().is_some_and(is_2020_12) => {}
            "$schema" => faults.push((
                place,
                "only JSON Schema 2020-12 is supported, and `$schema` only at the top".into(),
                "remove `$schema`".into(),
            )),
            "properties" => {
                if value.get("__proto__").is_some() {
                    faults.push((
                        place.key("__proto__"),
                        "`__proto__` is not allowed as a name: JavaScript readers drop it".into(),
                        "rename the property".into(),
                    ));
                }
            }
            "pattern" => pattern(value.as_str().unwrap_or_default(), place, patterns, faults),
            "patternProperties" => {
                for key in value.as_object().into_iter().flatten().map(|(key, _)| key) {
                    pattern(key, place.key(key), patterns, faults);
                }
            }
            known if is_known(known) => {}
            vendor if vendor.starts_with("x-") => {}
            unknown => {
                let known = ONE_SCHEMA.iter().chain(&SCHEMA_LISTS).chain(&SCHEMA_MAPS).chain(&PLAIN);
                let otherwise = "remove it, or begin it with `x-`";
                let remedy = crate::similar::remedy(unknown, known.copied(), otherwise);
                let message = format!("`{}` is not a known keyword", shorten(unknown));
                faults.push((place, message, remedy));
            }
        }
    }
    for (place, child) in children(schema, at) {
        keywords(child, &place, Level::Inside, patterns, faults);
    }
}

/// Limits the size and number of patterns, because every check of a document compiles them.
fn pattern(pattern: &str, place: Pointer, patterns: &mut usize, faults: &mut Vec<SchemaFault>) {
    *patterns += 1;
    if *patterns == MAX_PATTERNS + 1 {
        let message = format!("more than {MAX_PATTERNS} regular expressions in one schema");
        faults.push((place, message, "use `enum` or `maxLength` if possible".into()));
    } else if *patterns <= MAX_PATTERNS && regular_expression::is_too_big(pattern) {
        faults.push((
            place,
            "the regular expression grows too large when compiled".into(),
            "lower its repetition counts; `maxLength` limits a length at no cost".into(),
        ));
    }
}

fn too_large(schema: &Value) -> Option<String> {
    if depth(schema) > MAX_DEPTH {
        return Some(format!("the schema is nested more than {MAX_DEPTH} deep"));
    }
    let bytes = schema.to_string().len();
    (bytes > MAX_BYTES).then(|| format!("the schema has {bytes} bytes; at most {MAX_BYTES} are allowed"))
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

fn is_2020_12(uri: &str) -> bool {
    uri.trim_end_matches('#') == "https://json-schema.org/draft/2020-12/schema"
}

fn is_known(keyword: &str) -> bool {
    ONE_SCHEMA.contains(&keyword)
        || SCHEMA_LISTS.contains(&keyword)
        || SCHEMA_MAPS.contains(&keyword)
        || PLAIN.contains(&keyword)
}

pub(super) fn shorten(text: &str) -> String {
    const MOST: usize = 160;
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST + 1).collect();
    if clean.chars().count() > MOST { clean.chars().take(MOST).chain("…".chars()).collect() } else { clean }
}

const MAX_BYTES: usize = 64 * 1024;
const MAX_DEPTH: usize = 32;
const MAX_PATTERNS: usize = 64;

const ONE_SCHEMA: [&str; 11] = [
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const SCHEMA_LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const SCHEMA_MAPS: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Keywords without subschemas. `$id`, `$dynamicAnchor` and `$dynamicRef` are excluded on purpose: they can change
/// what a reference means. No reference may name an `$anchor`.
const PLAIN: [&str; 35] = [
    "$anchor",
    "$comment",
    "$ref",
    "$schema",
    "const",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependentRequired",
    "deprecated",
    "description",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
    "writeOnly",
];
