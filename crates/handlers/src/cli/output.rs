//! What did the command say? Its output as the manifest reads it: text, JSON, lines of JSON, or a part of JSON.

use serde_json::{Map, Value};
use toolgate_spec::model::CommandOutput;

use super::{plain::plain, select::Selection};
use crate::js::values;

/// How a tool's output is read.
#[derive(Debug)]
pub struct Reader {
    kind: Kind,
    shape: Shape,
}

#[derive(Debug)]
enum Kind {
    Text,
    Json,
    JsonLines,
    Select(Selection),
}

/// Does the tool promise an object?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// The result is what came.
    Free,
    /// An output schema is declared, and describes an object: what is none stands in `result`.
    Object,
}

impl Reader {
    pub fn new(output: &CommandOutput, shape: Shape) -> Result<Self, String> {
        let kind = match output {
            CommandOutput::Text => Kind::Text,
            CommandOutput::Json => Kind::Json,
            CommandOutput::JsonLines => Kind::JsonLines,
            CommandOutput::Select(path) => Kind::Select(Selection::parse(path)?),
        };
        Ok(Self { kind, shape })
    }

    /// The result, or why the output is not of the kind that the manifest names.
    pub fn read(&self, stdout: &[u8]) -> Result<Value, String> {
        let value = match &self.kind {
            Kind::Text => Value::String(plain(stdout)),
            Kind::Json => json(stdout)?,
            Kind::JsonLines => Value::Array(lines(stdout)?),
            Kind::Select(selection) => selection.of(&json(stdout)?)?,
        };
        Ok(match (self.shape, value) {
            (Shape::Object, value) if !value.is_object() => {
                Value::Object(Map::from_iter([("result".to_owned(), value)]))
            }
            (_, value) => value,
        })
    }
}

/// Texts inside JSON are cleaned as well: an escape can be written as `\u001b`.
fn json(stdout: &[u8]) -> Result<Value, String> {
    let text = plain(stdout);
    if text.trim().is_empty() {
        return Err("the command wrote nothing where JSON was expected".to_owned());
    }
    check_count(&text)?;
    let value = serde_json::from_str(&text).map_err(|error| {
        format!("the output is not JSON: line {}, column {}", error.line(), error.column())
    })?;
    Ok(clean(value))
}

fn lines(stdout: &[u8]) -> Result<Vec<Value>, String> {
    let text = plain(stdout);
    check_count(&text)?;
    let mut values = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let value = serde_json::from_str(line).map_err(|error| {
            format!("line {} of the output is not JSON: column {}", index + 1, error.column())
        })?;
        values.push(clean(value));
    }
    Ok(values)
}

/// More than of JavaScript: what a command writes is often selected from.
const MOST_VALUES: usize = 500_000;

/// A value takes far more memory than its text.
fn check_count(text: &str) -> Result<(), String> {
    if values::count(text) <= MOST_VALUES {
        return Ok(());
    }
    Err(format!(
        "the output has more than {MOST_VALUES} names and values; let the command select what is needed"
    ))
}

fn clean(value: Value) -> Value {
    match value {
        Value::String(text) if text.chars().any(char::is_control) => Value::String(plain(text.as_bytes())),
        Value::Array(items) => Value::Array(items.into_iter().map(clean).collect()),
        Value::Object(members) => {
            let cleaned = members.into_iter().map(|(name, value)| {
                let name = if name.chars().any(char::is_control) { plain(name.as_bytes()) } else { name };
                (name, clean(value))
            });
            Value::Object(cleaned.collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(output: &CommandOutput, stdout: &str, expect: &Value) {
        let reader = Reader::new(output, Shape::Free).unwrap();
        match reader.read(stdout.as_bytes()) {
            Ok(value) => assert_eq!(&value, expect),
            Err(why) => assert_eq!(&json!({ "error": why }), expect),
        }
    }

    #[test]
    fn each_kind_is_read_as_such() {
        check(&CommandOutput::Text, "\x1b[1mhi\x1b[0m\n", &json!("hi\n"));
        check(&CommandOutput::Json, "\u{feff}{\"a\": [1, 2.5]}\n", &json!({ "a": [1, 2.5] }));
        check(&CommandOutput::JsonLines, "{\"a\":1}\n\n[2]\n3", &json!([{ "a": 1 }, [2], 3]));
        check(&CommandOutput::JsonLines, "", &json!([]));
        let select = CommandOutput::Select(".items[].name".into());
        check(&select, r#"{"items": [{"name": "x"}, {"name": "y"}]}"#, &json!(["x", "y"]));
    }

    #[test]
    fn what_is_not_of_the_kind_is_told_with_its_place() {
        let error = |text: &str| json!({ "error": text });
        check(&CommandOutput::Json, "{\"a\":\n oops}", &error("the output is not JSON: line 2, column 2"));
        check(&CommandOutput::Json, "{} {}", &error("the output is not JSON: line 1, column 4"));
        check(&CommandOutput::Json, " \n", &error("the command wrote nothing where JSON was expected"));
        check(&CommandOutput::JsonLines, "1\n{\n", &error("line 2 of the output is not JSON: column 1"));
        let deep = "[".repeat(100_000);
        assert!(Reader::new(&CommandOutput::Json, Shape::Free).unwrap().read(deep.as_bytes()).is_err());
    }

    #[test]
    fn escapes_inside_of_json_are_taken_out_too() {
        let stdout = r#"{"a": "\u001b[31mred\u001b[0m", "\u001b]0;x\u0007k": "\u009b1mv"}"#;
        check(&CommandOutput::Json, stdout, &json!({ "a": "red", "k": "v" }));
    }

    #[test]
    fn what_is_no_object_stands_in_one_where_one_is_promised() {
        let promised = |output: &CommandOutput, stdout: &str| {
            Reader::new(output, Shape::Object).unwrap().read(stdout.as_bytes()).unwrap()
        };
        assert_eq!(promised(&CommandOutput::Text, "x"), json!({ "result": "x" }));
        assert_eq!(promised(&CommandOutput::JsonLines, "1\n"), json!({ "result": [1] }));
        assert_eq!(promised(&CommandOutput::Json, "{}"), json!({}));
        assert_eq!(promised(&CommandOutput::Json, "[1]"), json!({ "result": [1] }));
    }
}
