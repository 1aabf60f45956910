//! The document of an upstream tool: what a model sees, and how the gate treats it.

use std::{
    fmt::{self, Write as _},
    path::Path,
};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolgate_config::model::{Upstream, UpstreamToolSettings};
use toolgate_upstream::{Pin, ToolDefinition, ToolHints};

/// A document for review, and the file name to store it under.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamDocument {
    pub name: String,
    pub document: Map<String, Value>,
}

/// Why a listed tool gets no document.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DocumentError {
    /// The configuration lists other tools of this server.
    NotSelected,
    /// A path of the configuration is not UTF-8.
    Path,
}

/// Describes a listed tool as a document. Without a hint of the server, a tool counts as one that writes.
pub fn tool_document(
    upstream: &Upstream,
    workspace: &Path,
    tool: &ToolDefinition,
) -> Result<UpstreamDocument, DocumentError> {
    let settings = upstream.tools.iter().find(|settings| settings.tool == tool.name);
    if settings.is_none() && !upstream.tools.is_empty() {
        return Err(DocumentError::NotSelected);
    }
    let name = tool_name(upstream, tool, settings);
    let mut document = Map::new();
    let mut set = |key: &str, value: Value| document.insert(key.to_owned(), value);
    set("name", name.clone().into());
    set("description", description(upstream, tool, settings).into());
    set("classification", classification(tool.hints()).into());
    set("input", schema(&tool.input_schema));
    if let Some(output) = &tool.output_schema {
        set("output", schema(output));
    }
    let pin = Pin::of(tool);
    set("handler", json!({ "mcp": { "upstream": upstream.name, "tool": tool.name, "pin": pin.as_str() } }));
    set("capability", capability(upstream, workspace, settings)?);
    Ok(UpstreamDocument { name, document })
}

/// At most 64 characters of those that every client accepts. A name that must be shortened keeps a digest, so it stays unique.
fn tool_name(upstream: &Upstream, tool: &ToolDefinition, settings: Option<&UpstreamToolSettings>) -> String {
    let own = settings.and_then(|settings| settings.alias.as_ref()).unwrap_or(&tool.name);
    let full = format!("{}{own}", upstream.tool_prefix());
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let plain: String = full.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    if plain == full && plain.len() <= MOST_CHARS {
        return plain;
    }
    let mut name: String = plain.chars().take(MOST_CHARS - 2 * DIGEST_BYTES - 1).collect();
    name.push('_');
    for byte in Sha256::digest(&full).iter().take(DIGEST_BYTES) {
        // Writing to a `String` cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

fn description(
    upstream: &Upstream,
    tool: &ToolDefinition,
    settings: Option<&UpstreamToolSettings>,
) -> String {
    let own = settings.and_then(|settings| settings.description.as_ref()).or(tool.description.as_ref());
    let own = own.or(tool.title.as_ref()).map(|text| text.trim()).filter(|text| !text.is_empty());
    own.map_or_else(|| format!("The tool {} of the server {}.", tool.name, upstream.name), str::to_owned)
}

const fn classification(hints: ToolHints) -> &'static str {
    match hints {
        ToolHints { destructive: Some(true), .. } => "destructive",
        ToolHints { read_only: Some(true), .. } => "read",
        _ => "write",
    }
}

/// The schema as 2020-12. Most servers write draft 7, whose keywords for arguments mean the same.
fn schema(listed: &Map<String, Value>) -> Value {
    let mut schema = listed.clone();
    schema.remove("$schema");
    schema.entry("type").or_insert_with(|| "object".into());
    Value::Object(schema)
}

/// The reach of the server, because every tool of it has that reach.
fn capability(
    upstream: &Upstream,
    workspace: &Path,
    settings: Option<&UpstreamToolSettings>,
) -> Result<Value, DocumentError> {
    let mut capability = Map::new();
    let paths = granted_paths(upstream, workspace).ok_or(DocumentError::Path)?;
    if !paths.is_empty() {
        capability.insert("execution".to_owned(), json!({ "allowedPaths": paths }));
    }
    if !upstream.hosts.is_empty() {
        let network = json!({ "access": "limited", "allowedHosts": upstream.hosts });
        capability.insert("network".to_owned(), network);
    }
    if let Some(approval) = settings.and_then(|settings| settings.approval) {
        capability.insert("approval".to_owned(), json!({ "level": approval.name() }));
    }
    Ok(Value::Object(capability))
}

/// The paths of a server, those in the workspace as `$WORKSPACE/…`. `None` if one is not UTF-8.
pub(super) fn granted_paths(upstream: &Upstream, workspace: &Path) -> Option<Vec<String>> {
    let granted = upstream.read.iter().chain(&upstream.write).map(|path| {
        let path_text = path.to_str()?;
        Some(match path.strip_prefix(workspace).ok().and_then(Path::to_str) {
            Some("") => "$WORKSPACE".to_owned(),
            Some(inside) => format!("$WORKSPACE/{inside}"),
            None => path_text.to_owned(),
        })
    });
    granted.collect()
}

impl fmt::Display for DocumentError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotSelected => "`tools` of this server in the configuration does not list it",
            Self::Path => "a path of this server in the configuration is not UTF-8",
        })
    }
}

impl std::error::Error for DocumentError {}

/// The limit of common clients for names of tools.
const MOST_CHARS: usize = 64;
const DIGEST_BYTES: usize = 4;
