//! What did the command say? Its output as the manifest reads it: text, JSON, lines of JSON, or a part of JSON. An embedding
//! program may read it by a parser in code instead.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde_json::{Map, Value};
use toolgate_spec::model::CommandOutput;

use super::{json, plain_text::plain, selection::Selection};

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
    Code(OutputParser),
}

type Parse = dyn Fn(&[u8]) -> Result<Value, String> + Send + Sync;

/// Reads a command's standard output in code, or says why it cannot.
#[derive(Clone)]
pub struct OutputParser(Arc<Parse>);

impl OutputParser {
    pub fn new(parse: impl Fn(&[u8]) -> Result<Value, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(parse))
    }

    /// Texts are cleaned as those of JSON output are: the program's parser may pass on what the command wrote.
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

    /// Reads the output by code instead.
    pub fn set_parser(&mut self, parser: OutputParser) {
        self.kind = Kind::Code(parser);
    }

    /// Is the output read by code of the embedding program, which may take any time?
    pub const fn runs_code(&self) -> bool {
        matches!(self.kind, Kind::Code(_))
    }

    /// The form of the output as far as searches are concerned: code may make anything of it, as one JSON value may hold anything.
    pub const fn form<'o>(&self, written: &'o CommandOutput) -> &'o CommandOutput {
        match self.kind {
            Kind::Code(_) => &CommandOutput::Json,
            Kind::Text | Kind::Json | Kind::JsonLines | Kind::Select(_) => written,
        }
    }

    /// What was said, or why it is not of the kind that the manifest names.
    pub fn read(&self, stdout: &[u8]) -> Result<Value, String> {
        Ok(match &self.kind {
            Kind::Text => Value::String(plain(stdout)),
            Kind::Json => json::read(stdout)?,
            Kind::JsonLines => Value::Array(json::read_lines(stdout)?),
            Kind::Select(selection) => selection.of(&json::read(stdout)?)?,
            Kind::Code(parser) => parser.read(stdout)?,
        })
    }

    /// The result that it makes.
    pub fn shaped(&self, value: Value) -> Value {
        match (self.shape, value) {
            (Shape::Object, value) if !value.is_object() => {
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
    fn parser_in_code_reads_the_output_and_cannot_take_the_gateway_down() {
        let reader = |parser: OutputParser| {
            let mut reader = Reader::new(&CommandOutput::Json, Shape::Free).unwrap();
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
    fn what_is_not_of_the_kind_is_told_with_its_place() {
        let error = |text: &str| json!({ "error": text });
        check(&CommandOutput::Json, "{\"a\":\n oops}", &error("the output is not JSON: line 2, column 2"));
        check(&CommandOutput::Json, "{} {}", &error("the output is not JSON: line 1, column 4"));
        check(&CommandOutput::Json, " \n", &error("the command wrote nothing where JSON was expected"));
        check(&CommandOutput::JsonLines, "1\n{\n", &error("line 2 of the output is not JSON: column 1"));
        let deep = "[".repeat(100_000);
        assert!(Reader::new(&CommandOutput::Json, Shape::Free).unwrap().read(deep.as_bytes()).is_err());
    }

    /// Encoders leave them as they are, and whoever writes two titles would take away what stands between them.
    #[test]
    fn no_text_takes_away_what_stands_beside_it() {
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
    fn colours_around_json_are_taken_out_and_nothing_more() {
        let coloured = "\x1b[1;39m{\x1b[0m\x1b[34;1m\"a\"\x1b[0m: \x1b[0;32m\"x\u{9d}\"\x1b[0m, \"b\": \"\u{9c}y\"}\x1b[K\n";
        check(&CommandOutput::Json, coloured, &json!({ "a": "x", "b": "y" }));
        check(&CommandOutput::JsonLines, coloured, &json!([{ "a": "x", "b": "y" }]));
        // Of what an encoder should not have written, nothing but the control itself.
        let raw =
            "{\"a\": \"x\x1b]\", \"b\": \"here\", \"c\": \"\x1b\\\\y\", \"d\": \"\x1b[\", \"e\": \"\x07\"}";
        check(&CommandOutput::Json, raw, &json!({ "a": "x]", "b": "here", "c": "\\y", "d": "[", "e": "" }));
    }

    #[test]
    fn names_that_read_alike_stay_apart_and_the_plain_one_keeps_its_own() {
        let kept = json!({ "k": 3, "k (2)": 2 });
        check(&CommandOutput::Json, r#"{"k\u001b[31m": 2, "k": 3}"#, &kept);
        check(&CommandOutput::Json, r#"{"k": 3, "k\u001b[31m": 2}"#, &kept);
    }

    #[test]
    fn half_a_pair_is_replaced() {
        check(
            &CommandOutput::Json,
            r#"["a\ud800", "\uDC00b", "\ud83d\ude00", "\\\\ud800"]"#,
            &json!(["a\u{fffd}", "\u{fffd}b", "😀", "\\\\ud800"]),
        );
        check(&CommandOutput::JsonLines, "\"\\ud800\"\n1\n", &json!(["\u{fffd}", 1]));
    }

    #[test]
    fn an_integer_that_would_be_rounded_is_refused() {
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
    fn escapes_inside_of_json_are_taken_out_too() {
        let stdout = r#"{"a": "\u001b[31mred\u001b[0m", "\u001b]0;x\u0007k": "\u009b1mv"}"#;
        check(&CommandOutput::Json, stdout, &json!({ "a": "red", "k": "v" }));
    }

    #[test]
    fn what_is_no_object_stands_in_one_where_one_is_promised() {
        let promised = |output: &CommandOutput, stdout: &str| {
            let reader = Reader::new(output, Shape::Object).unwrap();
            reader.shaped(reader.read(stdout.as_bytes()).unwrap())
        };
        assert_eq!(promised(&CommandOutput::Text, "x"), json!({ "result": "x" }));
        assert_eq!(promised(&CommandOutput::JsonLines, "1\n"), json!({ "result": [1] }));
        assert_eq!(promised(&CommandOutput::Json, "{}"), json!({}));
        assert_eq!(promised(&CommandOutput::Json, "[1]"), json!({ "result": [1] }));
    }
}
