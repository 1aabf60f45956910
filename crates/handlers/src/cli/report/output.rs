//! Reads the output of a command as the manifest says: text, JSON, JSON lines, or a selection of JSON. An embedding
//! program may provide a parser instead.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde_json::{Map, Value};
use toolgate_spec::model::CommandOutput;

use super::{json, plain_text::plain, selection::Selection};

/// Reads the output of one tool.
#[derive(Debug)]
pub struct OutputReader {
    format: ReaderFormat,
    shape: ResultShape,
}

#[derive(Debug)]
enum ReaderFormat {
    Text,
    Json,
    JsonLines,
    Select(Selection),
    Code(OutputParser),
}

type ParseFn = dyn Fn(&[u8]) -> Result<Value, String> + Send + Sync;

/// A parser in code for a command's standard output.
#[derive(Clone)]
pub struct OutputParser(Arc<ParseFn>);

impl OutputParser {
    pub fn new(parse: impl Fn(&[u8]) -> Result<Value, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(parse))
    }

    /// Texts are cleaned like those of JSON output, because the parser may return what the command wrote.
    fn read(&self, stdout: &[u8]) -> Result<Value, String> {
        match catch_unwind(AssertUnwindSafe(|| (self.0)(stdout))) {
            Ok(parsed) => parsed.map(json::clean),
            Err(_) => Err("the program's output parser panicked".to_owned()),
        }
    }
}

impl fmt::Debug for OutputParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputParser")
    }
}

/// Whether the tool declares an output schema.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ResultShape {
    /// The result is the value as read.
    Free,
    /// The tool declares an output schema, which describes an object. Other values are wrapped in `result`.
    Object,
}

impl OutputReader {
    pub fn new(output: &CommandOutput, shape: ResultShape) -> Result<Self, String> {
        let format = match output {
            CommandOutput::Text => ReaderFormat::Text,
            CommandOutput::Json => ReaderFormat::Json,
            CommandOutput::JsonLines => ReaderFormat::JsonLines,
            CommandOutput::Select(path) => ReaderFormat::Select(Selection::parse(path)?),
        };
        Ok(Self { format, shape })
    }

    /// Replaces the format by a parser in code.
    pub fn set_parser(&mut self, parser: OutputParser) {
        self.format = ReaderFormat::Code(parser);
    }

    /// Whether a parser of the embedding program reads the output, which may take long.
    pub const fn runs_code(&self) -> bool {
        matches!(self.format, ReaderFormat::Code(_))
    }

    /// The output format for the purposes of searches. Code counts as JSON, because both can return anything.
    pub const fn form<'o>(&self, written: &'o CommandOutput) -> &'o CommandOutput {
        match self.format {
            ReaderFormat::Code(_) => &CommandOutput::Json,
            ReaderFormat::Text | ReaderFormat::Json | ReaderFormat::JsonLines | ReaderFormat::Select(_) => {
                written
            }
        }
    }

    /// The value, or why the output does not have the declared format.
    pub fn read(&self, stdout: &[u8]) -> Result<Value, String> {
        Ok(match &self.format {
            ReaderFormat::Text => Value::String(plain(stdout)),
            ReaderFormat::Json => json::read(stdout)?,
            ReaderFormat::JsonLines => Value::Array(json::read_lines(stdout)?),
            ReaderFormat::Select(selection) => selection.of(&json::read(stdout)?)?,
            ReaderFormat::Code(parser) => parser.read(stdout)?,
        })
    }

    /// Wraps the value if the tool declares an object.
    pub fn shaped(&self, value: Value) -> Value {
        match (self.shape, value) {
            (ResultShape::Object, value) if !value.is_object() => {
                Value::Object(Map::from_iter([("result".to_owned(), value)]))
            }
            (_, value) => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(output: &CommandOutput, stdout: &str, expect: &Value) {
        let reader = OutputReader::new(output, ResultShape::Free).unwrap();
        match reader.read(stdout.as_bytes()) {
            Ok(value) => assert_eq!(&value, expect),
            Err(why) => assert_eq!(&json!({ "error": why }), expect),
        }
    }

    #[test]
    fn each_format_is_read() {
        check(&CommandOutput::Text, "\x1b[1mhi\x1b[0m\n", &json!("hi\n"));
        check(&CommandOutput::Json, "\u{feff}{\"a\": [1, 2.5]}\n", &json!({ "a": [1, 2.5] }));
        check(&CommandOutput::JsonLines, "{\"a\":1}\n\n[2]\n3", &json!([{ "a": 1 }, [2], 3]));
        check(&CommandOutput::JsonLines, "", &json!([]));
        let select = CommandOutput::Select(".items[].name".into());
        check(&select, r#"{"items": [{"name": "x"}, {"name": "y"}]}"#, &json!(["x", "y"]));
    }

    #[test]
    fn parser_in_code_reads_output_and_may_panic() {
        let reader = |parser: OutputParser| {
            let mut reader = OutputReader::new(&CommandOutput::Json, ResultShape::Free).unwrap();
            reader.set_parser(parser);
            reader
        };
        let lines = reader(OutputParser::new(|stdout| {
            let text = str::from_utf8(stdout).map_err(|error| error.to_string())?;
            Ok(text.lines().collect())
        }));
        assert_eq!(lines.read(b"a\x1b[1mb\nc\n").unwrap(), json!(["ab", "c"]));
        assert!(lines.read(b"\xff").unwrap_err().contains("utf-8"));
        let panics = reader(OutputParser::new(|_| panic!("on purpose")));
        assert_eq!(panics.read(b"").unwrap_err(), "the program's output parser panicked");
    }

    #[test]
    fn format_error_names_its_position() {
        let error = |text: &str| json!({ "error": text });
        check(&CommandOutput::Json, "{\"a\":\n oops}", &error("the output is not JSON: line 2, column 2"));
        check(&CommandOutput::Json, "{} {}", &error("the output is not JSON: line 1, column 4"));
        check(&CommandOutput::Json, " \n", &error("the command wrote nothing where JSON was expected"));
        check(&CommandOutput::JsonLines, "1\n{\n", &error("line 2 of the output is not JSON: column 1"));
        let deep = "[".repeat(100_000);
        assert!(
            OutputReader::new(&CommandOutput::Json, ResultShape::Free)
                .unwrap()
                .read(deep.as_bytes())
                .is_err()
        );
    }

    /// Encoders keep these characters, so two titles could remove everything between them.
    #[test]
    fn text_cannot_remove_its_neighbours() {
        let title = |id: u8, title: &str| json!({ "id": id, "title": title });
        for (begin, end) in [
            ("\u{9d}", "\u{9c}"),
            ("\u{90}", "\u{9c}"),
            ("\u{9b}", ""),
            ("\u{9d}", ""),
            ("\u{8e}", ""),
            ("\u{8}", ""),
        ] {
            let titles = ["ok".to_owned(), format!("x{begin}"), "a hole".to_owned(), format!("{end}y")];
            let written: Vec<Value> = (1..).zip(&titles).map(|(id, text)| title(id, text)).collect();
            let left: Vec<Value> = (1..)
                .zip(["ok", if begin == "\u{8}" { "" } else { "x" }, "a hole", "y"])
                .map(|(id, text)| title(id, text))
                .collect();
            check(
                &CommandOutput::Json,
                &json!({ "issues": written }).to_string(),
                &json!({ "issues": left }),
            );
            let lines: Vec<String> = written.iter().map(Value::to_string).collect();
            check(&CommandOutput::JsonLines, &lines.join("\n"), &json!(left));
        }
    }

    #[test]
    fn only_colours_around_json_are_removed() {
        let coloured = "\x1b[1;39m{\x1b[0m\x1b[34;1m\"a\"\x1b[0m: \x1b[0;32m\"x\u{9d}\"\x1b[0m, \"b\": \"\u{9c}y\"}\x1b[K\n";
        check(&CommandOutput::Json, coloured, &json!({ "a": "x", "b": "y" }));
        check(&CommandOutput::JsonLines, coloured, &json!([{ "a": "x", "b": "y" }]));
        // In invalid output, only the control character is removed.
        let raw =
            "{\"a\": \"x\x1b]\", \"b\": \"here\", \"c\": \"\x1b\\\\y\", \"d\": \"\x1b[\", \"e\": \"\x07\"}";
        check(&CommandOutput::Json, raw, &json!({ "a": "x]", "b": "here", "c": "\\y", "d": "[", "e": "" }));
    }

    #[test]
    fn equal_names_after_cleaning_stay_distinct() {
        let kept = json!({ "k": 3, "k (2)": 2 });
        check(&CommandOutput::Json, r#"{"k\u001b[31m": 2, "k": 3}"#, &kept);
        check(&CommandOutput::Json, r#"{"k": 3, "k\u001b[31m": 2}"#, &kept);
    }

    #[test]
    fn lone_surrogate_is_replaced() {
        check(
            &CommandOutput::Json,
            r#"["a\ud800", "\uDC00b", "\ud83d\ude00", "\\\\ud800"]"#,
            &json!(["a\u{fffd}", "\u{fffd}b", "😀", "\\\\ud800"]),
        );
        check(&CommandOutput::JsonLines, "\"\\ud800\"\n1\n", &json!(["\u{fffd}", 1]));
    }

    #[test]
    fn integer_that_would_be_rounded_is_rejected() {
        let error = "the output has an integer of more than 64 bits, which would be rounded; let the command write it as text";
        let error = json!({ "error": error });
        check(&CommandOutput::Json, "[123456789012345678901234567890]", &error);
        check(&CommandOutput::JsonLines, "1\n{\"id\":-9223372036854775809}\n", &error);
        check(&CommandOutput::Json, "18446744073709551615", &json!(u64::MAX));
        check(&CommandOutput::Json, "-9223372036854775808", &json!(i64::MIN));
        check(
            &CommandOutput::Json,
            "[1e30, \"123456789012345678901234567890\"]",
            &json!([1e30, "123456789012345678901234567890"]),
        );
    }

    #[test]
    fn escaped_sequences_in_json_are_removed() {
        let stdout = r#"{"a": "\u001b[31mred\u001b[0m", "\u001b]0;x\u0007k": "\u009b1mv"}"#;
        check(&CommandOutput::Json, stdout, &json!({ "a": "red", "k": "v" }));
    }

    #[test]
    fn non_object_is_wrapped_if_an_object_is_declared() {
        let promised = |output: &CommandOutput, stdout: &str| {
            let reader = OutputReader::new(output, ResultShape::Object).unwrap();
            reader.shaped(reader.read(stdout.as_bytes()).unwrap())
        };
        assert_eq!(promised(&CommandOutput::Text, "x"), json!({ "result": "x" }));
        assert_eq!(promised(&CommandOutput::JsonLines, "1\n"), json!({ "result": [1] }));
        assert_eq!(promised(&CommandOutput::Json, "{}"), json!({}));
        assert_eq!(promised(&CommandOutput::Json, "[1]"), json!({ "result": [1] }));
    }
}
