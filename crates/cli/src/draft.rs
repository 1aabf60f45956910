//! A document that says it is a draft is not served; publishing takes that word out of it.

use std::path::Path;

use serde_json::Value;
use toolgate_spec::{FileKind, Format, check, edit, edit_in_bundle};

use crate::{
    Failure, load,
    write::{self, Existing},
};

/// The result of `clear`.
pub enum Cleared {
    /// The document does not say that it is a draft.
    Unchanged,
    Edited,
    /// The file cannot be written, for this reason, and still says `draft: true`.
    NotWritable(Failure),
}

/// Sets `draft` to false where it is true. Nothing else of the file changes.
pub fn clear(file: &Path, tool: &str) -> Result<Cleared, Failure> {
    let edited = edited(file, tool, |document| {
        (document.get("draft") == Some(&Value::Bool(true))).then(|| vec![("draft", Some(Value::Bool(false)))])
    })?;
    Ok(match edited {
        None => Cleared::Unchanged,
        Some(text) => match write::write(file, text.as_bytes(), Existing::Edit) {
            Ok(()) => Cleared::Edited,
            Err(failure) => Cleared::NotWritable(failure),
        },
    })
}

/// Changes top-level members of one tool in its file, where `wanted` names any.
pub fn change(
    file: &Path,
    tool: &str,
    wanted: impl FnOnce(&Members) -> Option<Changes>,
) -> Result<(), Failure> {
    match edited(file, tool, wanted)? {
        Some(text) => write::write(file, text.as_bytes(), Existing::Edit),
        None => Ok(()),
    }
}

type Members = serde_json::Map<String, Value>;
type Changes = Vec<(&'static str, Option<Value>)>;

/// The new text of the file. `None` if `wanted` names no change.
fn edited(
    file: &Path,
    tool: &str,
    wanted: impl FnOnce(&Members) -> Option<Changes>,
) -> Result<Option<String>, Failure> {
    let bytes = load::read_file(file).map_err(|_| Failure::at(file, "it cannot be read any more"))?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::at(file, "it is not UTF-8"))?;
    let format = load::format_of(file);
    let checked = check(text.as_bytes(), format);
    let Some((index, found)) = checked.tools.iter().enumerate().find(|(_, known)| known.name == tool) else {
        return Err(Failure::at(file, format!("the tool `{tool}` is not in it any more")));
    };
    let Some(changes) = wanted(&found.document) else { return Ok(None) };
    let edited = match (checked.kind, format) {
        (FileKind::Bundle, Format::Json) => edit_in_bundle(&text, index, &changes),
        (FileKind::Bundle, Format::Yaml) => {
            return Err(Failure::at(file, "a YAML bundle cannot be edited in place; import it first"));
        }
        _ => edit(&text, format, &changes),
    };
    edited.map(Some).map_err(|error| Failure::at(file, error))
}
