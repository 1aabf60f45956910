//! A document that says it is a draft is not served; publishing takes that word out of it.

use std::path::Path;

use serde_json::Value;
use toolgate_spec::{FileKind, Format, check, edit, edit_in_bundle};

use crate::{
    Failure, load,
    write::{self, Existing},
};

/// Sets `draft` to false where it is true. Nothing else of the file changes.
pub fn clear(file: &Path, tool: &str) -> Result<(), Failure> {
    change(file, tool, |document| {
        (document.get("draft") == Some(&Value::Bool(true))).then(|| vec![("draft", Some(Value::Bool(false)))])
    })
}

/// Changes top-level members of one tool in its file, where `wanted` names any.
pub fn change(
    file: &Path,
    tool: &str,
    wanted: impl FnOnce(&serde_json::Map<String, Value>) -> Option<Vec<(&'static str, Option<Value>)>>,
) -> Result<(), Failure> {
    let bytes = load::read_file(file).map_err(|_| Failure::at(file, "it cannot be read any more"))?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::at(file, "it is not UTF-8"))?;
    let format = load::format_of(file);
    let checked = check(text.as_bytes(), format);
    let Some((index, found)) = checked.tools.iter().enumerate().find(|(_, known)| known.name == tool) else {
        return Err(Failure::at(file, format!("the tool `{tool}` is not in it any more")));
    };
    let Some(changes) = wanted(&found.document) else { return Ok(()) };
    let edited = match (checked.kind, format) {
        (FileKind::Bundle, Format::Json) => edit_in_bundle(&text, index, &changes),
        (FileKind::Bundle, Format::Yaml) => {
            return Err(Failure::at(file, "a YAML bundle cannot be edited in place; import it first"));
        }
        _ => edit(&text, format, &changes),
    };
    let edited = edited.map_err(|error| Failure::at(file, error))?;
    write::write(file, edited.as_bytes(), Existing::Edit)
}
