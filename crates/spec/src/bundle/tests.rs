use proptest::prelude::*;
use serde_json::{Value, json};

use super::{build_bundle, flow_yaml, split_bundle, to_json_text, to_yaml_text};
use crate::{Format, read::read};

#[track_caller]
fn check_yaml(value: &Value) {
    for text in [to_yaml_text(value), flow_yaml(value)] {
        let back = read(&text, Format::Yaml).unwrap_or_else(|finding| panic!("{}\n{text}", finding.message));
        assert_eq!(&back.value, value, "{text}");
    }
}

/// The bundle, or the error message.
fn built(tools: &[(&str, Format)], frame: Option<&str>) -> String {
    build_bundle(tools, frame).unwrap_or_else(|error| error.to_string())
}

#[test]
fn split_bundle_keeps_each_tool_as_written() {
    let one = "{ \"name\" : \"a\",\"n\":1.10, \"big\": 12345678901234567890123 }";
    let two = "{\"name\":\"\\u0062\"}";
    let text = format!("{{\"x\": [1], \"toolSpecs\": [ {one} ,\n{two}], \"toolMcpServerSetting\": {{ }} }}");
    let entries = split_bundle(&text).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.raw).collect::<Vec<_>>(), [one, two]);
    assert_eq!(entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let array = format!("\n[ {one} ,\n{two}] ");
    assert_eq!(split_bundle(&array).unwrap(), entries);
    assert!(split_bundle("{\"toolSpecs\": {}}").is_err());
    assert!(split_bundle("{}").is_err());
    assert!(split_bundle("{\"toolSpecs\": [], \"toolSpecs\": []}").is_err());
}

#[test]
fn build_bundle_inserts_tools_as_written() {
    let json = "{ \"name\" : \"a\", \"n\":1.10 }\n";
    let yaml = "name: b\n# a comment\ncode: |\n  return 1\n";
    assert_eq!(
        built(&[(json, Format::Json), (yaml, Format::Yaml)], None),
        "{\n  \"toolSpecs\": [\n    { \"name\" : \"a\", \"n\":1.10 },\n    {\n      \"name\": \"b\",\n      \"code\": \"return 1\\n\"\n    }\n  ]\n}\n"
    );
    let frame = "{\"vendor\": 1.10, \"toolSpecs\": [1, 2], \"toolMcpServerSetting\": { \"autoAdd\":true } }";
    assert_eq!(
        built(&[], Some(frame)),
        "{\"vendor\": 1.10, \"toolSpecs\": [], \"toolMcpServerSetting\": { \"autoAdd\":true } }"
    );
    assert_eq!(built(&[], Some("{\"v\": 1}")), "{\n  \"toolSpecs\": [],\"v\": 1}");
    assert_eq!(built(&[], Some("{}")), "{\n  \"toolSpecs\": []}");
}

#[test]
fn duplicate_name_or_id_is_rejected() {
    let tool = |text: &'static str| (text, Format::Json);
    assert_eq!(
        built(&[tool("{\"name\":\"a\"}"), tool("{\"name\":\"a\",\"toolId\":\"1\"}")], None),
        "tool 2 of the bundle has the same name `a` as an earlier one"
    );
    assert_eq!(
        built(&[tool("{\"name\":\"a\",\"toolId\":\"1\"}"), tool("{\"name\":\"b\",\"toolId\":\"1\"}")], None),
        "tool 2 of the bundle has the same id `1` as an earlier one"
    );
    assert_eq!(built(&[tool("{}")], None), "tool 1 of the bundle cannot be bundled: it has no name");
    assert!(built(&[tool("[]")], None).contains("not an object"));
    assert!(built(&[], Some("[]")).contains("not a bundle"));
}

#[test]
fn json_text_is_indented_and_ends_with_a_line_feed() {
    assert_eq!(to_json_text(&json!({"a": [1]})), "{\n  \"a\": [\n    1\n  ]\n}\n");
}

#[test]
fn yaml_uses_block_style_if_possible() {
    let tool = json!({"name": "a", "draft": true, "params": [{"name": "x", "required": false}], "code": "let a = 1\nreturn a\n", "tags": []});
    assert_eq!(
        to_yaml_text(&tool),
        "name: a\ndraft: true\nparams:\n  - name: x\n    required: false\ncode: |\n  let a = 1\n  return a\ntags: []\n"
    );
}

#[test]
fn ambiguous_strings_survive_yaml() {
    for text in TRICKY {
        check_yaml(&json!({ "a": text, "b": [text], "c": { "d": text, "e": [[text]] } }));
        check_yaml(&json!({ *text: 1, "x": { *text: { *text: null } } }));
        check_yaml(&json!(text));
    }
    for value in [
        json!({}),
        json!([]),
        json!(null),
        json!({"a": {}}),
        json!({"a": []}),
        json!({"a": 1e20, "b": -0.5, "c": u64::MAX}),
    ] {
        check_yaml(&value);
    }
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{0,12}",
        "[-:#?!&*|>%@`'\"\\\\{}\\[\\],~ \\n\\t0-9a-zA-Z.]{0,24}",
        proptest::collection::vec(any::<char>(), 0..12).prop_map(String::from_iter),
        proptest::sample::select(TRICKY).prop_map(str::to_owned),
        "( {0,3}[a-z#:{}-]{0,8} {0,2}\\n{1,2}){1,5}",
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((any_text(), inner), 0..5)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_value_survives_yaml(value in any_value()) {
        check_yaml(&value);
    }
}

const TRICKY: &[&str] = &[
    "",
    " ",
    "no",
    "No",
    "yes",
    "on",
    "y",
    "true",
    "True",
    "null",
    "Null",
    "~",
    "1",
    "-1",
    "+1",
    "1e3",
    "1_000",
    "0x1F",
    "0o17",
    "017",
    ".5",
    "1.",
    ".inf",
    "-.Inf",
    ".nan",
    "- a",
    "-",
    "--",
    "---",
    "--- a",
    "...",
    "? a",
    "?",
    ": ",
    ":",
    "a: b",
    "a:",
    "a #b",
    "#",
    "# a",
    "&a",
    "*a",
    "!a",
    "!!str a",
    "|",
    ">",
    "%YAML 1.2",
    "@a",
    "`a`",
    "'",
    "\"",
    "''",
    "\\",
    "\\n",
    "{",
    "}",
    "{a}",
    "[",
    "[a]",
    ",",
    "<<",
    "=",
    "a ",
    " a",
    "a  ",
    "a\n",
    "a\n\n",
    "\na",
    "\n",
    "\n\n",
    " a\nb",
    "a\n b\n",
    "a\r\nb",
    "a\rb",
    "\t",
    "\ta",
    "a\t",
    "a\tb\n\tc",
    "2001-01-01",
    "2001-01-01T00:00:00Z",
    "12:30:45",
    "\u{0}",
    "\u{7}",
    "\u{1b}[0m",
    "\u{7f}",
    "\u{85}",
    "a\u{85}b",
    "\u{a0}",
    "\u{2028}",
    "a\u{2029}b",
    "\u{feff}",
    "\u{feff}a",
    "\u{fffe}",
    "\u{ffff}",
    "\u{1f600}",
    "grüße",
    "日本語",
    "\u{202e}abc",
    "return `${a}: #{b}`\n  // x\n\n",
    "function f() {\n\treturn 1\n}\n",
    "0",
    "-0",
    "0.0",
    "1e400",
    "99999999999999999999999",
    "=1+1",
    "a: |\n  b",
];
