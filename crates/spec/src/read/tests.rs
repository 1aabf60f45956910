use std::fmt::Write as _;

use super::{locate, read};
use crate::source::MAX_YAML_DEPTH;
use crate::{
    Code, Format, LineIndex, Pointer,
    finding::{Finding, FindingTarget},
};

/// The error of a text: `line:column pointer message`.
fn broken(text: &str, format: Format) -> String {
    let finding = read(text, format).map(|tree| tree.value).expect_err("should not parse");
    let position = LineIndex::new(text).position(finding.span.expect("a place").start);
    format!("{}:{} {} {}", position.line, position.column, finding.at.as_str(), finding.message)
}

/// The text at the span of a pointer.
fn place(text: &str, format: Format, pointer: &str, target: FindingTarget) -> String {
    read(text, format).expect("should parse");
    let mut findings = [Finding { target, ..Finding::new(Code::SpecParse, Pointer::new(pointer), "", "") }];
    locate(text, format, &mut findings);
    findings[0].span.map_or("nowhere".into(), |span| text[span.range()].to_owned())
}

#[test]
fn json_errors_say_where() {
    assert_eq!(broken("{\"a\": [1, {\"b\": NaN}]}", Format::Json), "1:17 /a/1/b expected value");
    assert_eq!(
        broken("{\n  \"a\": 1,\n  \"a\": 2\n}", Format::Json),
        "3:3 /a duplicate key `a` in one object"
    );
    assert_eq!(broken("{\"a\": \"x", Format::Json), "1:8 /a the text ends inside a string");
    assert_eq!(broken("{} {}", Format::Json), "1:4  more text follows the end of the document");
    assert_eq!(broken(&"[".repeat(10_000), Format::Json).split(' ').next(), Some("1:128"));
    assert_eq!(broken("   ", Format::Json), "1:1  the file is empty");
}

#[test]
fn yaml_errors_say_where() {
    for (text, expect) in [
        ("a: 1\nb: 2\na: 3\n", "3:1  duplicate key `a` in one mapping"),
        ("a: {b: 1, \"b\": 2}\n", "1:11  duplicate key `b` in one mapping"),
        ("1: x\n'1': y\n", "1:1  duplicate key `1` in one mapping"),
        ("a: !!python/object x\n", "1:20  tag `!!python/object` is not supported"),
        ("a: !mine x\n", "1:10  tag `!mine` is not supported"),
        ("a: !!binary _\n", "1:13  a tag that does not fit its value"),
        ("a: .nan\n", "1:4  `.nan` is not a JSON number"),
        ("a: -.inf\n", "1:4  `-.inf` is not a JSON number"),
        ("a: 1e999\n", "1:4  `1e999` is not a JSON number"),
        ("a: 1\n---\nb: 2\n", "2:1  more than one document in one file"),
        ("a: &x [*x]\n", "1:8  an alias is inside its own anchor"),
        ("a: *x\n", "1:4  an alias without its anchor"),
        ("<<: {a: 1}\n", "1:1  merge key `<<` is not supported"),
        ("? [a]\n: 1\n", "1:3  a key is not a string"),
        ("{a: 1}: 1\n", "1:1  a key is not a string"),
        ("null: 1\n", "1:1  a key is not a string"),
        ("a: [1, 2\n", "1:4  unclosed bracket '['"),
    ] {
        assert_eq!(broken(text, Format::Yaml), expect, "{text}");
    }
}

#[test]
fn yaml_errors_have_a_remedy_and_name_no_library_option() {
    for (text, expect) in [
        ("a: 1\na: 2\n", "remove one of the two; readers disagree on which one counts"),
        ("a: !x 1\n", "remove the tag; types are those of JSON, and quotes make a string"),
        ("a: &x [*x]\n", "write the values out"),
        (
            "a: 1\n---\nb: 2\n",
            "one file holds one document; several tools go into a bundle: {toolSpecs: [...]}",
        ),
        ("[a]: 1\n", "keys must be strings, as in JSON; quote the key"),
        ("<<: {a: 1}\n", "write the merged keys out"),
    ] {
        let finding = read(text, Format::Yaml).map(|tree| tree.value).expect_err("should not parse");
        assert_eq!(finding.remedy, expect, "{text}");
    }
}

#[test]
fn yaml_bombs_are_rejected() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let previous = level - 1;
        let aliases = vec![format!("*a{previous}"); 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    let many = "too many anchors and aliases";
    assert!(broken(&bomb, Format::Yaml).ends_with(many), "{}", broken(&bomb, Format::Yaml));
    let anchors: String = (0..257).fold(String::new(), |text, n| text + &format!("a{n}: &x{n} 1\n"));
    assert_eq!(broken(&anchors, Format::Yaml), format!("257:13  {many}"));
    let aliases = (0..257).fold("a: &x 1\n".to_owned(), |text, n| text + &format!("a{n}: *x\n"));
    assert_eq!(broken(&aliases, Format::Yaml), format!("258:7  {many}"));
}

#[test]
fn depth_is_bounded_in_yaml() {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    // On a test thread's 2 MiB stack without optimization, the smallest stack of any reader.
    assert!(read(&nested(MAX_YAML_DEPTH), Format::Yaml).is_ok());
    for (levels, place) in [(MAX_YAML_DEPTH + 1, "1:41"), (10_000, "1:256")] {
        let shown = broken(&nested(levels), Format::Yaml);
        assert_eq!(shown, format!("{place}  nested deeper than {MAX_YAML_DEPTH} levels"));
    }
}

#[test]
fn pointers_lead_back_to_the_text() {
    let json = "{\"a\": [1, {\"b/c\": \"x\\\"y\"}], \"d\": {}}";
    assert_eq!(place(json, Format::Json, "/a/1/b~1c", FindingTarget::Value), "\"x\\\"y\"");
    assert_eq!(place(json, Format::Json, "/a/1/b~1c", FindingTarget::Key), "\"b/c\"");
    assert_eq!(place(json, Format::Json, "/d", FindingTarget::Value), "{}");
    assert_eq!(place(json, Format::Json, "", FindingTarget::Value), json);
    assert_eq!(place(json, Format::Json, "/nothing", FindingTarget::Value), "nowhere");
    let yaml = "a:\n  - 1\n  - b: text\nü: {d: 4}\n";
    assert_eq!(place(yaml, Format::Yaml, "/a/1/b", FindingTarget::Value), "text");
    assert_eq!(place(yaml, Format::Yaml, "/ü", FindingTarget::Key), "ü");
}

#[test]
fn order_and_numbers_survive() {
    let tree = read("{\"z\": 1.5, \"a\": 18446744073709551615, \"m\": -0.0}", Format::Json).expect("parses");
    assert_eq!(tree.value.to_string(), "{\"z\":1.5,\"a\":18446744073709551615,\"m\":-0.0}");
    assert!(tree.has_wide_numbers);
}

/// All document walks use the stack; the deepest accepted document must not overflow it.
#[test]
fn deepest_document_is_checked_without_overflow() {
    let document = |value: &str| {
        format!(
            "{{\"name\": \"t\", \"code\": \"return 1\", \"codeType\": \"Javascript\", \"x-deep\": {value}}}"
        )
    };
    let deep = |levels: usize| format!("{}\"ghp_\"{}", "{\"a\": ".repeat(levels), "}".repeat(levels));
    for (format, levels) in [(Format::Json, 120), (Format::Yaml, 38)] {
        let text = document(&deep(levels));
        let file = crate::check_text(&text, format);
        let tool = &file.tools[0];
        let spec = tool.spec.as_ref().unwrap_or_else(|| panic!("{:?} {:?}", file.findings, tool.findings));
        let digest = crate::digest(spec, &tool.document);
        assert_eq!(digest, crate::digest(spec, &tool.document));
        let mut findings =
            [Finding::new(Code::SpecParse, Pointer::new(format!("/x-deep{}", "/a".repeat(levels))), "", "")];
        crate::locate(&text, format, &mut findings);
        assert!(findings[0].span.is_some());
    }
}

#[test]
fn yaml_tags_are_rejected() {
    for tagged in [
        "!!str abc",
        "!!binary YWJj",
        "!!float 1",
        "!!int \"1\"",
        "!!null abc",
        "!!map {a: 1}",
        "!!seq [1]",
        "! 12",
        "!<tag:yaml.org,2002:str> 12",
    ] {
        let said = broken(&format!("a: {tagged}\n"), Format::Yaml);
        assert!(said.contains("is not supported"), "{tagged}: {said}");
    }
    assert!(broken("!!str a: 1\n", Format::Yaml).contains("is not supported"));
    assert!(
        broken("%TAG ! tag:yaml.org,2002:\n---\na: !str 12\n", Format::Yaml).contains("is not supported")
    );
    assert!(read("a: 'no ! tag'\nb: a!b\nc: |\n  !!str x\n# !!str\n", Format::Yaml).is_ok());
}

/// The YAML reader of a reviewer must not see a different number.
#[test]
fn ambiguous_yaml_numbers_are_rejected() {
    for number in ["0777", "-007", "0o17", "0b11", "1_000", "+1_0.5", "0x1_f", "01.5", "1_0e3", "00"] {
        let said = broken(&format!("a: [{number}]\n"), Format::Yaml);
        assert!(said.starts_with("1:5 ") && said.contains("other YAML readers"), "{number}: {said}");
    }
    for fine in [
        "0",
        "0.5",
        "10",
        "0x1f",
        "1e3",
        "'007'",
        "2001-01-01",
        "010.0.0.1",
        "a_1",
        "00:30",
        "0_a",
        "1.2.3_4",
    ] {
        assert!(read(&format!("a: {fine}\n"), Format::Yaml).is_ok(), "{fine}");
    }
}

/// Ten thousand positions on one line of megabytes, found without scanning the line each time.
#[test]
fn long_yaml_line_is_located_in_linear_time() {
    let text = format!("{{\"pad\": \"{}\", \"list\": [{}]}}\n", "é".repeat(2_000_000), "x,".repeat(10_000));
    let mut findings: Vec<_> = (0..10_000)
        .map(|index| Finding::new(Code::SpecParse, Pointer::new("/list").index(index), "", ""))
        .collect();
    read(&text, Format::Yaml).expect("should parse");
    locate(&text, Format::Yaml, &mut findings);
    let last = findings[9_999].span.expect("a place");
    assert_eq!(&text[last.range()], "x");
}
