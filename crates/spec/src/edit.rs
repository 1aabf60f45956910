//! How can a few fields of a document change while every other byte of its text stays?
//!
//! INVARIANT: what comes out has been read again and is the old document with exactly the wanted changes. Text that
//! cannot be changed that way is refused, never written anew at a guess.

mod json;
mod yaml;

use std::{error::Error, fmt};

use serde_json::{Map, Value};

use crate::{Format, bundle, read};

/// A top-level field and its new value; `None` removes the field.
pub type Change<'key> = (&'key str, Option<Value>);

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EditError {
    /// The text cannot be read, or is no object.
    NotADocument(String),
    /// The bundle has no tool of this number.
    NoSuchTool(usize),
    /// The way this text is written does not allow the change in place; says why.
    NotInPlace(&'static str),
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotADocument(why) => write!(f, "the text is no document to edit: {why}"),
            Self::NoSuchTool(index) => write!(f, "the bundle has no tool {}", index + 1),
            Self::NotInPlace(why) => write!(f, "the document cannot be changed in place: {why}"),
        }
    }
}

impl Error for EditError {}

/// Sets and removes top-level fields. What already has the wanted value is not touched; new fields go to the end.
pub fn edit(text: &str, format: Format, changes: &[Change<'_>]) -> Result<String, EditError> {
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

/// As `edit`, for one tool of a JSON bundle or array of tools; `index` counts from zero.
pub fn edit_in_bundle(text: &str, index: usize, changes: &[Change<'_>]) -> Result<String, EditError> {
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
    // As text, because the order of the members counts, too.
    let (found, wanted) = (whole_value(&whole)?.to_string(), wanted.to_string());
    if found == wanted { Ok(whole) } else { Err(DAMAGED) }
}

/// The changes that saving a document makes to its timestamps: created once, updated always.
pub fn stamp(document: &Map<String, Value>, now_ms: u64) -> Vec<Change<'static>> {
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

fn with_changes(before: &Map<String, Value>, changes: &[Change<'_>]) -> Map<String, Value> {
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

/// Members, values and order.
fn is_exactly(text: &str, format: Format, wanted: &Map<String, Value>) -> bool {
    object(text, format).is_ok_and(|found| found == *wanted && found.keys().eq(wanted.keys()))
}

const DAMAGED: EditError = EditError::NotInPlace("the result would not be the document with the change");

#[cfg(test)]
mod tests;
