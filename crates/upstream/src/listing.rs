//! The tools that a server lists, with bounds on pages, tools and bytes.

use serde_json::{Map, Value, json};

use crate::UpstreamError;

/// A tool as its server describes it. Texts and schemas are untrusted and unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub input_schema: Map<String, Value>,
    pub output_schema: Option<Map<String, Value>>,
    pub annotations: Option<Map<String, Value>>,
}

/// What a server claims about a tool. `None` means that it claims nothing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ToolHints {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

impl ToolDefinition {
    /// Reads one element of a `tools/list` result.
    pub fn read(value: Value) -> Result<Self, UpstreamError> {
        let Value::Object(mut tool) = value else { return Err(invalid("a tool is not an object")) };
        let Some(Value::String(name)) = tool.remove("name") else {
            return Err(invalid("a tool has no name"));
        };
        if name.is_empty() || name.chars().count() > NAME_CHARS {
            return Err(invalid("a tool's name is empty or too long"));
        }
        let Some(Value::Object(input_schema)) = tool.remove("inputSchema") else {
            return Err(invalid(&format!("the tool `{}` has no input schema", name.escape_debug())));
        };
        Ok(Self {
            name,
            title: text(tool.remove("title")),
            description: text(tool.remove("description")),
            input_schema,
            output_schema: object(tool.remove("outputSchema")),
            annotations: object(tool.remove("annotations")),
        })
    }

    /// The form that [`Self::read`] reads.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": self.annotations,
        })
    }

    pub fn hints(&self) -> ToolHints {
        let hint = |name: &str| self.annotations.as_ref()?.get(name)?.as_bool();
        ToolHints {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        }
    }
}

/// Collects the pages of a listing.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub tools: Vec<ToolDefinition>,
    cursor: Option<String>,
    pages: usize,
}

impl Listing {
    pub fn next_params(&self) -> Map<String, Value> {
        let cursor = self.cursor.clone().map(|cursor| ("cursor".to_owned(), Value::from(cursor)));
        cursor.into_iter().collect()
    }

    /// Adds a page. Returns whether it was the last one.
    pub fn add(&mut self, mut page: Value) -> Result<bool, UpstreamError> {
        let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) else {
            return Err(invalid("a page has no `tools`"));
        };
        for tool in tools {
            let tool = ToolDefinition::read(tool)?;
            if self.tools.iter().any(|known| known.name == tool.name) {
                return Err(invalid(&format!("the tool `{}` is listed twice", tool.name.escape_debug())));
            }
            self.tools.push(tool);
        }
        self.pages = self.pages.saturating_add(1);
        if self.tools.len() > MOST_TOOLS {
            return Err(invalid(&format!("more than {MOST_TOOLS} tools")));
        }
        self.cursor = text(page.get_mut("nextCursor").map(Value::take));
        if self.cursor.is_some() && self.pages >= MOST_PAGES {
            return Err(invalid(&format!("more than {MOST_PAGES} pages")));
        }
        Ok(self.cursor.is_none())
    }
}

fn text(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn object(value: Option<Value>) -> Option<Map<String, Value>> {
    match value {
        Some(Value::Object(object)) => Some(object),
        _ => None,
    }
}

fn invalid(why: &str) -> UpstreamError {
    UpstreamError::Protocol(format!("its tool list is invalid: {why}"))
}

const MOST_TOOLS: usize = 1000;
const MOST_PAGES: usize = 100;
const NAME_CHARS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pages: &[Value], expect: &str) {
        let mut listing = Listing::default();
        let mut shown = "unfinished".to_owned();
        for page in pages {
            match listing.add(page.clone()) {
                Ok(false) => {}
                Ok(true) => {
                    shown = listing.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(" ");
                }
                Err(error) => shown = error.to_string(),
            }
        }
        assert!(shown.contains(expect), "{shown}");
    }

    fn tool(name: &str) -> Value {
        json!({ "name": name, "inputSchema": { "type": "object" } })
    }

    #[test]
    fn pages_are_joined_in_order() {
        check(
            &[json!({ "tools": [tool("a"), tool("b")], "nextCursor": "2" }), json!({ "tools": [tool("c")] })],
            "a b c",
        );
    }

    #[test]
    fn invalid_listings_are_rejected() {
        check(&[json!({})], "no `tools`");
        check(&[json!({ "tools": [{ "name": "a" }] })], "no input schema");
        check(&[json!({ "tools": [{ "inputSchema": {} }] })], "no name");
        check(&[json!({ "tools": [tool("a"), tool("a")] })], "listed twice");
        check(&[json!({ "tools": [tool(&"x".repeat(300))] })], "too long");
        let endless: Vec<Value> = (0..MOST_PAGES)
            .map(|page| json!({ "tools": [tool(&page.to_string())], "nextCursor": "more" }))
            .collect();
        check(&endless, "more than 100 pages");
    }
}
