//! Edits a document's `draft` flag and other top-level members in place.
//!
//! A document with `draft: true` is not served; publishing clears the flag.

use std::path::Path;

use serde_json::Value;
use toolgate_spec::{FileKind, Format, check, edit, edit_in_bundle};

use crate::{
    Failure, load,
    write::{self, Existing},
};

/// The result of `clear`.
pub enum DraftEdit {
    /// The document has no `draft: true`.
    Unchanged,
    Edited,
    /// The file cannot be written and still has `draft: true`.
    NotWritable(Failure),
}

/// Changes `draft: true` to false. The rest of the file stays as it is.
pub fn clear(file: &Path, tool: &str) -> Result<DraftEdit, Failure> {
    let edited = edited(file, tool, |document| {
        (document.get("draft") == Some(&Value::Bool(true))).then(|| vec![("draft", Some(Value::Bool(false)))])
    })?;
    Ok(match edited {
        None => DraftEdit::Unchanged,
        Some(text) => match write::write(file, text.as_bytes(), Existing::Edit) {
            Ok(()) => DraftEdit::Edited,
            Err(failure) => DraftEdit::NotWritable(failure),
        },
    })
}

/// Writes the changes that `wanted` returns to top-level members of one tool.
pub fn change(
    file: &Path,
    tool: &str,
    wanted: impl FnOnce(&DocumentMembers) -> Option<Changes>,
) -> Result<(), Failure> {
    match edited(file, tool, wanted)? {
        Some(text) => write::write(file, text.as_bytes(), Existing::Edit),
        None => Ok(()),
    }
}

type DocumentMembers = serde_json::Map<String, Value>;
type Changes = Vec<(&'static str, Option<Value>)>;

/// The new text of the file. `None` if `wanted` returns no changes.
fn edited(
    file: &Path,
    tool: &str,
    wanted: impl FnOnce(&DocumentMembers) -> Option<Changes>,
) -> Result<Option<String>, Failure> {
    let bytes = load::read_file(file).map_err(|_| Failure::at(file, "it can no longer be read"))?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::at(file, "it is not UTF-8"))?;
    let format = load::format_of(file);
    let checked = check(text.as_bytes(), format);
    let Some((index, found)) = checked.tools.iter().enumerate().find(|(_, known)| known.name == tool) else {
        return Err(Failure::at(file, format!("it no longer contains the tool `{tool}`")));
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
