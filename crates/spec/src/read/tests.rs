use std::fmt::Write as _;

use super::read;
use crate::{
    Code, Format, LineIndex, Pointer,
    finding::{Finding, Target},
};

/// Where a text breaks: `line:column pointer message`.
fn broken(text: &str, format: Format) -> String {
    let finding = read(text, format).map(|tree| tree.value).expect_err("should not parse");
    let position = LineIndex::new(text).position(finding.span.expect("a place").start);
    format!("{}:{} {} {}", position.line, position.column, finding.at.as_str(), finding.message)
}

/// The text that a pointer leads back to.
fn place(text: &str, format: Format, pointer: &str, target: Target) -> String {
    let tree = read(text, format).expect("should parse");
    let mut findings = [Finding { target, ..Finding::new(Code::SpecParse, Pointer::new(pointer), "", "") }];
    tree.locate(&mut findings);
    findings[0].span.map_or("nowhere".into(), |span| text[span.range()].to_owned())
}

#[test]
fn json_errors_say_where() {
    assert_eq!(broken("{\"a\": [1, {\"b\": NaN}]}", Format::Json), "1:17 /a/1/b expected value");
    assert_eq!(
        broken("{\n  \"a\": 1,\n  \"a\": 2\n}", Format::Json),
        "3:5 /a duplicate key `a` in one object"
    );
    assert_eq!(broken("{\"a\": \"x", Format::Json), "1:8 /a the text ends inside a string");
    assert_eq!(broken("{} {}", Format::Json), "1:4  more text follows the end of the document");
    assert_eq!(broken(&"[".repeat(10_000), Format::Json).split(' ').next(), Some("1:128"));
    assert_eq!(broken("   ", Format::Json), "1:1  the file is empty");
}

#[test]
fn yaml_errors_say_where() {
    for text in [
        "a: 1\na: 2\n",
        "a: !!python/object x\n",
        "a: .nan\n",
        "a: 1\n---\nb: 2\n",
        "a: &x [*x]\n",
        "<<: {a: 1}\n",
        "? [a]\n: 1\n",
        "a: [1, 2\n",
    ] {
        let shown = broken(text, Format::Yaml);
        assert!(shown.starts_with(|c: char| c.is_ascii_digit()), "{shown}");
    }
    assert!(broken("a: 1\nb: 2\na: 3\n", Format::Yaml).starts_with("3:1"));
}

#[test]
fn yaml_bombs_are_defused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let previous = level - 1;
        let aliases = vec![format!("*a{previous}"); 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    assert!(read(&bomb, Format::Yaml).is_err());
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(read(&deep, Format::Yaml).is_err());
}

#[test]
fn pointers_lead_back_to_the_text() {
    let json = "{\"a\": [1, {\"b/c\": \"x\\\"y\"}], \"d\": {}}";
    assert_eq!(place(json, Format::Json, "/a/1/b~1c", Target::Value), "\"x\\\"y\"");
    assert_eq!(place(json, Format::Json, "/a/1/b~1c", Target::Key), "\"b/c\"");
    assert_eq!(place(json, Format::Json, "/d", Target::Value), "{}");
    assert_eq!(place(json, Format::Json, "", Target::Value), json);
    assert_eq!(place(json, Format::Json, "/nothing", Target::Value), "nowhere");
    let yaml = "a:\n  - 1\n  - b: text\nü: {d: 4}\n";
    assert_eq!(place(yaml, Format::Yaml, "/a/1/b", Target::Value), "text");
    assert_eq!(place(yaml, Format::Yaml, "/ü", Target::Key), "ü: {d: 4}");
}

#[test]
fn order_and_numbers_survive() {
    let tree = read("{\"z\": 1.5, \"a\": 18446744073709551615, \"m\": -0.0}", Format::Json).expect("parses");
    assert_eq!(tree.value.to_string(), "{\"z\":1.5,\"a\":18446744073709551615,\"m\":-0.0}");
    assert!(tree.has_wide_numbers);
}
