//! Converts a tool to the formats of model APIs: name, description and argument schema, nothing else.
//! `docs/projections.md` explains the choices.

mod expand;
mod google;
mod name;

use std::{error::Error, fmt};

use serde_json::{Map, Value, json};

pub use name::wire_name;

use crate::model::{Param, ParamType, ToolSpec};

/// The wire format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WireTarget {
    Mcp,
    OpenAi,
    Anthropic,
    Google,
}

impl WireTarget {
    pub const ALL: [Self; 4] = [Self::Mcp, Self::OpenAi, Self::Anthropic, Self::Google];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Google => "google",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name() == name)
    }
}

/// Why a tool cannot be expressed in a format, and the position in its schema.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProjectError {
    /// `input` or `output`, with a pointer into it.
    pub at: String,
    pub message: String,
}

impl fmt::Display for ProjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.at, self.message)
    }
}

impl Error for ProjectError {}

/// Converts the tool to the format of `target`.
pub fn project(spec: &ToolSpec, target: WireTarget) -> Result<Value, ProjectError> {
    match target {
        WireTarget::Mcp => mcp(spec),
        WireTarget::OpenAi => openai(spec),
        WireTarget::Anthropic => anthropic(spec),
        WireTarget::Google => google(spec),
    }
}

/// An entry of `tools/list`.
pub fn mcp(spec: &ToolSpec) -> Result<Value, ProjectError> {
    let mut tool = head(spec, WireTarget::Mcp);
    let input = match &spec.governance.input {
        Some(input) => expand::listed_input(input)?,
        None => of_params(&spec.params),
    };
    tool.insert("inputSchema".into(), input);
    if let Some(output) = output_schema(spec)? {
        tool.insert("outputSchema".into(), output);
    }
    Ok(Value::Object(tool))
}

/// An entry of `tools` for function calling.
pub fn openai(spec: &ToolSpec) -> Result<Value, ProjectError> {
    let mut function = head(spec, WireTarget::OpenAi);
    function.insert("parameters".into(), plain_input(spec)?);
    Ok(json!({ "type": "function", "function": function }))
}

/// An entry of `tools` for tool use.
pub fn anthropic(spec: &ToolSpec) -> Result<Value, ProjectError> {
    let schema = plain_input(spec)?;
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(key) = properties.and_then(|properties| properties.keys().find(|key| !is_plain_key(key))) {
        return Err(ProjectError {
            at: format!("input/properties/{key}"),
            message: "a name here has at most 64 letters, digits, `_`, `.` and `-`".into(),
        });
    }
    let mut tool = head(spec, WireTarget::Anthropic);
    tool.insert("input_schema".into(), schema);
    Ok(Value::Object(tool))
}

/// A function declaration. A tool without parameters has no `parameters`, because the API rejects an empty object.
pub fn google(spec: &ToolSpec) -> Result<Value, ProjectError> {
    let schema = plain_input(spec)?;
    let mut tool = head(spec, WireTarget::Google);
    // This format requires a description.
    tool.entry("description").or_insert_with(|| spec.name.as_str().into());
    let has_properties =
        schema.get("properties").and_then(Value::as_object).is_some_and(|properties| !properties.is_empty());
    if has_properties {
        tool.insert("parameters".into(), google::restrict(&schema)?);
    }
    Ok(Value::Object(tool))
}

fn head(spec: &ToolSpec, target: WireTarget) -> Map<String, Value> {
    let mut tool = Map::new();
    tool.insert("name".into(), wire_name(&spec.name, target).into());
    insert_text(&mut tool, &spec.description);
    tool
}

/// The form for function calling: an object with properties, without combinators at the top.
fn plain_input(spec: &ToolSpec) -> Result<Value, ProjectError> {
    let schema = input_schema(spec)?;
    expand::check_top(&schema)?;
    Ok(schema)
}

/// The schema that the gate validates arguments with, without references.
pub fn input_schema(spec: &ToolSpec) -> Result<Value, ProjectError> {
    match &spec.governance.input {
        Some(input) => expand::input(input),
        None => Ok(of_params(&spec.params)),
    }
}

/// `None` if results are not objects, because MCP requires structured content to be an object. Also `None` with an
/// output policy that removes fields: clients would reject results without them.
fn output_schema(spec: &ToolSpec) -> Result<Option<Value>, ProjectError> {
    let declared = spec.governance.output.as_ref().filter(|_| spec.governance.output_policy.is_none());
    match declared {
        Some(schema) if schema.get("type").and_then(Value::as_str) == Some("object") => {
            expand::listed_output(schema).map(Some)
        }
        _ => Ok(None),
    }
}

fn of_params(params: &[Param]) -> Value {
    let properties: Map<String, Value> =
        params.iter().map(|param| (param.name.clone(), of_param(param))).collect();
    let required: Vec<Value> =
        params.iter().filter(|param| param.required).map(|param| param.name.as_str().into()).collect();
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties.into());
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
    schema.insert("additionalProperties".into(), false.into());
    Value::Object(schema)
}

fn of_param(param: &Param) -> Value {
    let mut schema = Map::new();
    schema.insert("type".into(), param.kind.schema_name().into());
    insert_text(&mut schema, &param.description);
    match param.kind {
        ParamType::Array => drop(schema.insert("items".into(), json!({}))),
        ParamType::Object => drop(schema.insert("additionalProperties".into(), true.into())),
        ParamType::String | ParamType::Integer | ParamType::Number | ParamType::Boolean => {}
    }
    Value::Object(schema)
}

fn insert_text(map: &mut Map<String, Value>, description: &str) {
    if !description.trim().is_empty() {
        map.insert("description".into(), description.into());
    }
}

fn is_plain_key(key: &str) -> bool {
    (1..=64).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}
