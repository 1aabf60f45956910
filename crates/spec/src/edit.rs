//! Changes single fields of a document and keeps every other byte of its text.
//!
//! INVARIANT: the result is parsed again and equals the old document with exactly the requested changes. Text that
//! cannot be changed this way is rejected, never rewritten.

mod json;
mod yaml;

use std::{error::Error, fmt};

use serde_json::{Map, Value};

use crate::{Format, bundle, read};

/// A top-level field and its new value; `None` removes the field.
pub type FieldChange<'key> = (&'key str, Option<Value>);

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EditError {
    /// The text cannot be parsed, or is not an object.
    NotADocument(String),
    /// The bundle has no tool at this index.
    NoSuchTool(usize),
    /// The layout of this text does not allow the change in place. Contains the reason.
    NotInPlace(&'static str),
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotADocument(why) => write!(f, "the document cannot be edited: {why}"),
            Self::NoSuchTool(index) => write!(f, "the bundle has no tool {}", index + 1),
            Self::NotInPlace(why) => write!(f, "the document cannot be changed in place: {why}"),
        }
    }
}

impl Error for EditError {}

/// Sets and removes top-level fields. Fields that already have the requested value stay untouched; new fields are
/// appended.
pub fn edit(text: &str, format: Format, changes: &[FieldChange<'_>]) -> Result<String, EditError> {
    let before = object(text, format)?;
    let after = with_changes(&before, changes);
    if after == before {
        return Ok(text.to_owned());
    }
    let edited = match format {
        Format::Json => json::edit(text, &before, changes)?,
        Format::Yaml => yaml::edit(text, changes)?,
    };
    verify(&edited, format, &after)?;
    Ok(edited)
}

/// Like `edit`, for one tool of a JSON bundle or array of tools; `index` counts from zero.
pub fn edit_in_bundle(text: &str, index: usize, changes: &[FieldChange<'_>]) -> Result<String, EditError> {
    let whole_value = |text: &str| {
        let tree = read::read(text, Format::Json);
        tree.map(|tree| tree.value).map_err(|finding| EditError::NotADocument(finding.message))
    };
    let document = whole_value(text)?;
    let specs = bundle::tools_in(&document).ok_or(EditError::NoSuchTool(index))?;
    let Value::Object(before) = specs.get(index).ok_or(EditError::NoSuchTool(index))? else {
        return Err(EditError::NotADocument("the tool is not an object".into()));
    };
    let list = bundle::tool_list(text).ok_or(DAMAGED)?;
    let elements = read::json_elements(text.get(list.clone()).ok_or(DAMAGED)?).ok_or(DAMAGED)?;
    let place = elements.get(index).ok_or(DAMAGED)?.shifted(list.start).range();
    let edited = json::edit(text.get(place.clone()).ok_or(DAMAGED)?, before, changes)?;

    let mut whole = text.to_owned();
    whole.replace_range(place, &edited);
    let mut wanted = document.clone();
    let tools = if wanted.is_array() { Some(&mut wanted) } else { wanted.get_mut("toolSpecs") };
    if let Some(tool) = tools.and_then(|tools| tools.get_mut(index)) {
        *tool = Value::Object(with_changes(before, changes));
    }
    // Compares the text, because the order of members matters too.
    let (found, wanted) = (whole_value(&whole)?.to_string(), wanted.to_string());
    if found == wanted { Ok(whole) } else { Err(DAMAGED) }
}

/// The timestamp changes for saving a document: `created` is set once, `updated` always.
pub fn stamp(document: &Map<String, Value>, now_ms: u64) -> Vec<FieldChange<'static>> {
    let is_new = document.get("createTimestamp").is_none_or(Value::is_null);
    let created = is_new.then(|| ("createTimestamp", Some(now_ms.into())));
    created.into_iter().chain([("updateTimestamp", Some(now_ms.into()))]).collect()
}

fn object(text: &str, format: Format) -> Result<Map<String, Value>, EditError> {
    let tree = read::read(text, format).map_err(|finding| EditError::NotADocument(finding.message))?;
    match tree.value {
        Value::Object(members) => Ok(members),
        _ => Err(EditError::NotADocument("it is not an object".into())),
    }
}

fn with_changes(before: &Map<String, Value>, changes: &[FieldChange<'_>]) -> Map<String, Value> {
    let mut after = before.clone();
    for (key, value) in changes {
        match value {
            Some(value) => drop(after.insert((*key).to_owned(), value.clone())),
            None => drop(after.shift_remove(*key)),
        }
    }
    after
}

fn verify(text: &str, format: Format, wanted: &Map<String, Value>) -> Result<(), EditError> {
    if is_exactly(text, format, wanted) { Ok(()) } else { Err(DAMAGED) }
}

/// Compares members, values and order.
fn is_exactly(text: &str, format: Format, wanted: &Map<String, Value>) -> bool {
    object(text, format).is_ok_and(|found| found == *wanted && found.keys().eq(wanted.keys()))
}

const DAMAGED: EditError =
    EditError::NotInPlace("the edited text would not equal the document with the change");

#[cfg(test)]
mod tests;
