//! Headers that repeat parts of a request for intermediaries (protocol version 2026-07-28).

use std::collections::HashMap;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};

/// The arguments of tools that must also be sent as headers, as the server's tool list says.
#[derive(Debug, Default)]
pub struct MirroredArguments(HashMap<String, Vec<MirroredArgument>>);

#[derive(Clone, Debug, Eq, PartialEq)]
struct MirroredArgument {
    /// Names of the properties from the root of the arguments.
    path: Vec<String>,
    header: String,
}

impl MirroredArguments {
    /// Learns from a page of a tool list. Removes tools with invalid annotations from it, as the protocol demands.
    pub fn learn(&mut self, page: &mut Value) {
        let Some(tools) = page.get_mut("tools").and_then(Value::as_array_mut) else { return };
        tools.retain(|tool| {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { return true };
            let schema = tool.get("inputSchema").and_then(Value::as_object);
            let Some(found) = schema.map_or(Some(Vec::new()), annotations) else { return false };
            if found.is_empty() {
                self.0.remove(name);
            } else if self.0.len() < MOST_TOOLS {
                self.0.insert(name.to_owned(), found);
            }
            true
        });
    }

    /// The headers of a request, without the protocol version.
    pub fn headers(&self, method: &str, params: &Value) -> Vec<(String, String)> {
        let mut headers = vec![("Mcp-Method".to_owned(), method.to_owned())];
        let source = match method {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return headers,
        };
        let Some(name) = params.get(source).and_then(Value::as_str) else { return headers };
        headers.push(("Mcp-Name".to_owned(), encode(name)));
        if method == "tools/call" {
            let mirrored = self.0.get(name).map(Vec::as_slice).unwrap_or_default();
            let arguments = params.get("arguments").unwrap_or(&Value::Null);
            headers.extend(mirrored.iter().filter_map(|argument| argument.header(arguments)));
        }
        headers
    }
}

impl MirroredArgument {
    fn header(&self, arguments: &Value) -> Option<(String, String)> {
        let value = self.path.iter().try_fold(arguments, |value, key| value.get(key))?;
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(flag) => flag.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some((format!("Mcp-Param-{}", self.header), encode(&text)))
    }
}

/// All annotations of a schema, or `None` if one is invalid.
fn annotations(schema: &Map<String, Value>) -> Option<Vec<MirroredArgument>> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    let mut names: Vec<_> = found.iter().map(|argument| argument.header.to_ascii_lowercase()).collect();
    names.sort_unstable();
    let is_unique = names.windows(2).all(|pair| pair.first() != pair.last());
    (is_unique && found.len() <= MOST_HEADERS).then_some(found)
}

fn collect(
    schema: &Map<String, Value>,
    path: &mut Vec<String>,
    found: &mut Vec<MirroredArgument>,
) -> Option<()> {
    for (key, value) in schema {
        match key.as_str() {
            ANNOTATION => {
                found.push(MirroredArgument { header: annotation(schema, path)?, path: path.clone() });
            }
            "properties" => {
                for (name, property) in value.as_object().into_iter().flatten() {
                    path.push(name.clone());
                    if let Value::Object(property) = property {
                        collect(property, path, found)?;
                    }
                    path.pop();
                }
            }
            // These hold values, not schemas.
            "default" | "const" | "enum" | "examples" => {}
            // An annotation is allowed only where its value has a fixed path.
            _ if contains_annotation(value) => return None,
            _ => {}
        }
    }
    Some(())
}

fn annotation(schema: &Map<String, Value>, path: &[String]) -> Option<String> {
    let header = schema.get(ANNOTATION)?.as_str()?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_valid = !path.is_empty()
        && (1..=HEADER_NAME_BYTES).contains(&header.len())
        && header.bytes().all(is_token)
        && matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean"));
    is_valid.then(|| header.to_owned())
}

fn contains_annotation(value: &Value) -> bool {
    match value {
        Value::Object(object) => {
            object.contains_key(ANNOTATION)
                || object.iter().any(|(key, value)| {
                    !matches!(key.as_str(), "default" | "const" | "enum" | "examples")
                        && contains_annotation(value)
                })
        }
        Value::Array(array) => array.iter().any(contains_annotation),
        _ => false,
    }
}

/// Encodes a text that a header cannot carry, or that looks encoded.
fn encode(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && text.trim() == text;
    let looks_encoded = text.starts_with(ENCODED_START) && text.ends_with(ENCODED_END);
    if is_plain && !looks_encoded {
        return text.to_owned();
    }
    format!("{ENCODED_START}{}{ENCODED_END}", BASE64_STANDARD.encode(text))
}

const ANNOTATION: &str = "x-mcp-header";
const ENCODED_START: &str = "=?base64?";
const ENCODED_END: &str = "?=";
const MOST_TOOLS: usize = 1000;
const MOST_HEADERS: usize = 16;
const HEADER_NAME_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn learned(schema: &Value) -> (MirroredArguments, usize) {
        let mut page = json!({ "tools": [{ "name": "t", "inputSchema": schema }, { "name": "other" }] });
        let mut mirrored = MirroredArguments::default();
        mirrored.learn(&mut page);
        (mirrored, page["tools"].as_array().unwrap().len())
    }

    #[track_caller]
    fn check(schema: &Value, arguments: &Value, expect: &[(&str, &str)]) {
        let (mirrored, _) = learned(schema);
        let headers = mirrored.headers("tools/call", &json!({ "name": "t", "arguments": arguments }));
        let shown: Vec<_> =
            headers[2..].iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(shown, expect);
    }

    #[test]
    fn method_and_name_are_repeated() {
        let mirrored = MirroredArguments::default();
        for (method, params, expect) in [
            ("tools/list", json!({}), vec!["tools/list"]),
            ("tools/call", json!({ "name": "a b" }), vec!["tools/call", "a b"]),
            ("prompts/get", json!({ "name": " x" }), vec!["prompts/get", "=?base64?IHg=?="]),
            (
                "resources/read",
                json!({ "uri": "file:///\u{e9}" }),
                vec!["resources/read", "=?base64?ZmlsZTovLy/DqQ==?="],
            ),
            (
                "tools/call",
                json!({ "name": "=?base64?literal?=" }),
                vec!["tools/call", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="],
            ),
        ] {
            let values: Vec<_> =
                mirrored.headers(method, &params).into_iter().map(|(_, value)| value).collect();
            assert_eq!(values, expect);
        }
    }

    #[test]
    fn annotated_arguments_are_repeated() {
        let schema = json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "type": "object", "properties": { "n": { "type": "integer", "x-mcp-header": "N" } } },
            "flag": { "type": "boolean", "x-mcp-header": "Flag" },
        } });
        check(
            &schema,
            &json!({ "region": "line1\nline2", "deep": { "n": -7 }, "flag": true }),
            &[
                ("Mcp-Param-Region", "=?base64?bGluZTEKbGluZTI=?="),
                ("Mcp-Param-N", "-7"),
                ("Mcp-Param-Flag", "true"),
            ],
        );
        check(&schema, &json!({ "region": null, "deep": 3, "flag": ["x"] }), &[]);
    }

    #[test]
    fn tools_with_invalid_annotations_are_removed() {
        let valid = json!({ "type": "string", "x-mcp-header": "A" });
        for (schema, kept) in [
            (json!({ "properties": { "a": valid } }), 2),
            (json!({ "properties": { "a": valid, "b": { "type": "string", "x-mcp-header": "a" } } }), 1),
            (json!({ "properties": { "a": { "type": "number", "x-mcp-header": "A" } } }), 1),
            (json!({ "properties": { "a": { "type": "string", "x-mcp-header": "A\r\nB" } } }), 1),
            (json!({ "properties": { "a": { "type": "string", "x-mcp-header": "" } } }), 1),
            (json!({ "type": "string", "x-mcp-header": "A" }), 1),
            (json!({ "properties": { "a": { "type": "array", "items": valid } } }), 1),
            (json!({ "oneOf": [{ "properties": { "a": valid } }] }), 1),
            (json!({ "properties": { "a": { "default": valid } } }), 2),
        ] {
            assert_eq!(learned(&schema).1, kept, "{schema}");
        }
    }
}
