//! Splits and builds bundles, and converts values to text. The text of each tool stays byte for byte.

mod text;

use std::{collections::HashSet, error::Error, fmt, ops::Range};

use serde_json::{Map, Value};

pub(crate) use text::flow_yaml;
pub use text::{to_json_text, to_yaml_text};

use crate::{Format, model::ToolId, read};

/// One tool of a bundle, as written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BundleEntry<'text> {
    /// Empty if the tool has no name.
    pub name: String,
    pub raw: &'text str,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BundleError {
    NotABundle(String),
    /// The text at this index (from zero) is not a tool.
    NotATool {
        index: usize,
        why: String,
    },
    Repeated {
        what: &'static str,
        text: String,
        index: usize,
    },
}

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotABundle(why) => write!(f, "not a bundle: {why}"),
            Self::NotATool { index, why } => {
                write!(f, "tool {} of the bundle cannot be bundled: {why}", index + 1)
            }
            Self::Repeated { what, text, index } => {
                write!(f, "tool {} of the bundle has the same {what} `{text}` as an earlier one", index + 1)
            }
        }
    }
}

impl Error for BundleError {}

/// Returns the tools of a JSON bundle or JSON array, each as written.
pub fn split_bundle(text: &str) -> Result<Vec<BundleEntry<'_>>, BundleError> {
    let tree = read::read(text, Format::Json).map_err(|finding| BundleError::NotABundle(finding.message))?;
    let Some(specs) = tools_in(&tree.value) else {
        return Err(BundleError::NotABundle("`toolSpecs` is not a list".into()));
    };
    let raws = raw_tools(text).filter(|raws| raws.len() == specs.len());
    let raws =
        raws.ok_or_else(|| BundleError::NotABundle("the entries of `toolSpecs` cannot be located".into()))?;
    let entries = specs.iter().zip(raws).map(|(spec, raw)| BundleEntry { name: name_of(spec), raw });
    Ok(entries.collect())
}

/// Builds one JSON bundle. JSON tools are copied as written; YAML tools are converted. If `frame`, an earlier bundle,
/// is given, all its fields except `toolSpecs` are kept as written.
pub fn build_bundle(tools: &[(&str, Format)], frame: Option<&str>) -> Result<String, BundleError> {
    let (mut ids, mut names) = (HashSet::new(), HashSet::new());
    let (mut values, mut texts) = (Vec::new(), Vec::new());
    for (index, (text, format)) in tools.iter().enumerate() {
        let tool = object(text, *format).map_err(|why| BundleError::NotATool { index, why })?;
        let value = Value::Object(tool);
        let name = name_of(&value);
        if name.is_empty() {
            return Err(BundleError::NotATool { index, why: "it has no name".into() });
        }
        let id = value.get("toolId").and_then(Value::as_str).and_then(ToolId::given);
        let id = id.unwrap_or_else(|| ToolId::of_name(&name)).as_str().to_owned();
        if !names.insert(name.clone()) {
            return Err(BundleError::Repeated { what: "name", text: name, index });
        }
        if !ids.insert(id.clone()) {
            return Err(BundleError::Repeated { what: "id", text: id, index });
        }
        texts.push(match format {
            Format::Json => (*text).to_owned(),
            // JSON strings contain no raw line breaks, so this indents lines without changing a value.
            Format::Yaml => to_json_text(&value).trim_end().replace('\n', "\n    "),
        });
        values.push(value);
    }
    insert_into_frame(&texts, values, frame.unwrap_or(EMPTY_FRAME))
}

fn insert_into_frame(texts: &[String], values: Vec<Value>, frame: &str) -> Result<String, BundleError> {
    let mut wanted = object(frame, Format::Json).map_err(BundleError::NotABundle)?;
    let members = read::json_members(frame).unwrap_or_default();
    let list = texts.iter().map(|text| format!("\n    {}", text.trim())).collect::<Vec<_>>().join(",");
    let list = if list.is_empty() { "[]".into() } else { format!("[{list}\n  ]") };
    let mut text = frame.to_owned();
    match (members.iter().find(|member| member.name == "toolSpecs"), frame.find('{')) {
        (Some(member), _) => text.replace_range(member.value.range(), &list),
        (None, Some(open)) => {
            let comma = if members.is_empty() { "" } else { "," };
            text.insert_str(open + 1, &format!("\n  \"toolSpecs\": {list}{comma}"));
        }
        (None, None) => {}
    }
    // INVARIANT: the returned text parses to the frame with exactly these tools.
    wanted.insert("toolSpecs".into(), Value::Array(values));
    match object(&text, Format::Json) {
        Ok(found) if found == wanted => Ok(text),
        _ => Err(BundleError::NotABundle("the tools cannot be inserted".into())),
    }
}

/// The list of tools in a bundle, or the document itself if it is an array.
pub(crate) fn tools_in(document: &Value) -> Option<&Vec<Value>> {
    document.as_array().or_else(|| document.get("toolSpecs")?.as_array())
}

/// The byte range of that list in the JSON text.
pub(crate) fn tool_list(text: &str) -> Option<Range<usize>> {
    let start = text.len() - text.trim_start().len();
    if text.get(start..)?.starts_with('[') {
        return Some(start..text.trim_end().len());
    }
    let members = read::json_members(text)?;
    Some(members.iter().find(|member| member.name == "toolSpecs")?.value.range())
}

fn raw_tools(text: &str) -> Option<Vec<&str>> {
    let list = text.get(tool_list(text)?)?;
    read::json_elements(list)?.into_iter().map(|span| list.get(span.range())).collect()
}

fn name_of(tool: &Value) -> String {
    tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn object(text: &str, format: Format) -> Result<Map<String, Value>, String> {
    match read::read(text, format).map_err(|finding| finding.message)?.value {
        Value::Object(members) => Ok(members),
        _ => Err("it is not an object".into()),
    }
}

const EMPTY_FRAME: &str = "{\n  \"toolSpecs\": []\n}\n";

#[cfg(test)]
mod tests;
