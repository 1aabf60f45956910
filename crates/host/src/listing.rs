//! Tool definitions in the formats of model APIs.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use toolgate_gate::LiveTool;
use toolgate_spec::project::{ProjectError, WireTarget, project};

/// The tools of one caller in one format.
#[derive(Clone, Debug)]
pub struct ToolList {
    /// The `tools` of a request in this format, or of a response to MCP's `tools/list`.
    pub tools: Vec<Value>,
    /// Tools that this format cannot describe, by name, and why.
    pub left_out: Vec<(String, ProjectError)>,
    names: BTreeMap<String, String>,
}

impl ToolList {
    pub(crate) fn of(tools: &[Arc<LiveTool>], form: WireTarget) -> Self {
        let mut list = Self { tools: Vec::new(), left_out: Vec::new(), names: BTreeMap::new() };
        for tool in tools {
            let defined = match form {
                // Includes the annotations, which come from the current policy.
                WireTarget::Mcp => Ok(tool.listing().clone()),
                WireTarget::OpenAi | WireTarget::Anthropic | WireTarget::Google => project(tool.spec(), form),
            };
            if let Err(why) = defined.and_then(|definition| list.add(tool.name(), definition, form)) {
                list.left_out.push((tool.name().to_owned(), why));
            }
        }
        if form == WireTarget::Google && !list.tools.is_empty() {
            list.tools = vec![json!({ "functionDeclarations": list.tools })];
        }
        list
    }

    fn add(&mut self, name: &str, definition: Value, form: WireTarget) -> Result<(), ProjectError> {
        let head = if form == WireTarget::OpenAi { definition.get("function") } else { Some(&definition) };
        let listed = head.and_then(|head| head.get("name")).and_then(Value::as_str).unwrap_or(name);
        if let Some(other) = self.names.get(listed) {
            let message =
                format!("the tool `{other}` has the same name `{listed}` in this format; rename one");
            return Err(ProjectError { at: "name".to_owned(), message });
        }
        self.names.insert(listed.to_owned(), name.to_owned());
        self.tools.push(definition);
        Ok(())
    }

    /// The tool for the name that a model uses. The names differ if the format allows fewer characters.
    pub fn tool_named(&self, listed: &str) -> Option<&str> {
        self.names.get(listed).map(String::as_str)
    }
}
