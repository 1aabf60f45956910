use serde_json::{Value, json};

use super::{FieldChange, edit, edit_in_bundle, stamp};
use crate::Format;

/// The edited text, or the error message.
fn edited(text: &str, format: Format, changes: &[FieldChange<'_>]) -> String {
    edit(text, format, changes).unwrap_or_else(|error| format!("error: {error}"))
}

#[track_caller]
fn check_json(text: &str, changes: &[FieldChange<'_>], expect: &str) {
    assert_eq!(edited(text, Format::Json, changes), expect);
}

#[track_caller]
fn check_yaml(text: &str, changes: &[FieldChange<'_>], expect: &str) {
    assert_eq!(edited(text, Format::Yaml, changes), expect);
}

fn set(key: &str, value: Value) -> FieldChange<'_> {
    (key, Some(value))
}

fn unset(key: &str) -> FieldChange<'_> {
    (key, None)
}

#[test]
fn json_values_are_replaced_in_place() {
    check_json("{\"a\":1,\"b\":2}", &[set("a", json!(3))], "{\"a\":3,\"b\":2}");
    check_json(
        "{ \"a\" : [1, 2] , \"b\":2}",
        &[set("a", json!({"x": [1]}))],
        "{ \"a\" : {\"x\":[1]} , \"b\":2}",
    );
    check_json(
        "{\n\t\"a\": 1,\n\t\"b\": 2\n}\n",
        &[set("b", json!({"x": [1], "y": "line\nbreak"}))],
        "{\n\t\"a\": 1,\n\t\"b\": {\n\t\t\"x\": [\n\t\t\t1\n\t\t],\n\t\t\"y\": \"line\\nbreak\"\n\t}\n}\n",
    );
    check_json("{\"\\u0061\": 1}", &[set("a", json!(2))], "{\"\\u0061\": 2}");
}

#[test]
fn new_json_members_use_the_existing_layout() {
    check_json("{}", &[set("a", json!(1))], "{\"a\": 1}");
    check_json("{ }\n", &[set("a", json!(1)), set("b", json!(2))], "{\"a\": 1,\"b\": 2}\n");
    check_json("{\n}", &[set("a", json!(1)), set("b", json!(2))], "{\n  \"a\": 1,\n  \"b\": 2\n}");
    check_json("{\"a\":1}", &[set("b", json!(2))], "{\"a\":1,\"b\":2}");
    check_json("{ \"a\": 1, \"c\": 0 }", &[set("b", json!([1]))], "{ \"a\": 1, \"c\": 0, \"b\": [1] }");
    check_json(
        "{\n    \"a\": 1\n}",
        &[set("b", json!([1]))],
        "{\n    \"a\": 1,\n    \"b\": [\n        1\n    ]\n}",
    );
    check_json(
        "{\r\n  \"a\": 1\r\n}\r\n",
        &[set("b", json!({"c": 1}))],
        "{\r\n  \"a\": 1,\r\n  \"b\": {\r\n    \"c\": 1\r\n  }\r\n}\r\n",
    );
    check_json(
        "{\n  \"a\": 1,\n\n  \"b\": \"}{\"\n}",
        &[set("\"", json!(2))],
        "{\n  \"a\": 1,\n\n  \"b\": \"}{\",\n  \"\\\"\": 2\n}",
    );
}

#[test]
fn removed_json_members_take_their_comma() {
    let text = "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}";
    check_json(text, &[unset("a")], "{\n  \"b\": 2,\n  \"c\": 3\n}");
    check_json(text, &[unset("b")], "{\n  \"a\": 1,\n  \"c\": 3\n}");
    check_json(text, &[unset("c")], "{\n  \"a\": 1,\n  \"b\": 2\n}");
    check_json(text, &[unset("a"), unset("b"), unset("c"), unset("d")], "{\n}");
    let all_but_new = [unset("a"), unset("b"), unset("c"), set("a", json!(1))];
    check_json(text, &all_but_new, "{\n  \"a\": 1\n}");
}

#[test]
fn other_members_stay_byte_for_byte() {
    let text = "{ \"x-big\":12345678901234567890123,\n \"x-float\" :1.10, \"x-e\": 1E+2,\"x-esc\":\"\\u00e9\\/\\ud83d\\ude00\",\n\n\t\"z\":{ \"b\":1 ,\"a\" : [ ] }, \"draft\": true , \"a\":null}  \n";
    check_json(text, &[set("draft", json!(false))], &text.replace("true", "false"));
    check_json(text, &[set("draft", json!(true))], text);
    check_json(text, &[], text);
    check_json(text, &[unset("none")], text);
}

#[test]
fn invalid_document_is_rejected() {
    for text in ["", "[]", "{\"a\": 1", "{\"a\": 1, \"a\": 2}", "1"] {
        assert!(
            edited(text, Format::Json, &[set("b", json!(1))])
                .starts_with("error: the document cannot be edited"),
            "{text}"
        );
    }
    assert!(edited("- a\n", Format::Yaml, &[set("b", json!(1))]).starts_with("error"));
}

#[test]
fn edit_changes_one_tool_of_a_bundle() {
    let text = "{\n  \"toolSpecs\": [\n    {\n      \"name\": \"a\"\n    },\n    { \"name\": \"b\", \"n\":1.10 }\n  ],\n  \"x\" :1.10\n}";
    let run = |index, changes: &[FieldChange<'_>]| {
        edit_in_bundle(text, index, changes).unwrap_or_else(|error| format!("error: {error}"))
    };
    assert_eq!(
        run(0, &[set("t", json!([1]))]),
        text.replace("\"a\"\n", "\"a\",\n      \"t\": [\n        1\n      ]\n")
    );
    assert_eq!(run(1, &[set("name", json!("c"))]), text.replace("\"b\"", "\"c\""));
    assert_eq!(run(2, &[]), "error: the bundle has no tool 3");
    assert!(edit_in_bundle("{\"toolSpecs\": [1]}", 0, &[]).is_err());
    assert!(edit_in_bundle("{}", 0, &[]).is_err());
    let array = " [ {\"name\": \"a\"},\n{ \"name\": \"b\", \"n\":1.10 } ]\n";
    let edited = edit_in_bundle(array, 1, &[("draft", Some(json!(true)))]).unwrap();
    assert!(edited.starts_with(" [ {\"name\": \"a\"},\n{ \"name\": \"b\", \"n\":1.10"), "{edited}");
    assert!(edited.contains("\"draft\"") && edited.ends_with(" ]\n"), "{edited}");
    assert!(edit_in_bundle("[1]", 0, &[]).is_err() && edit_in_bundle("[]", 0, &[]).is_err());
}

#[test]
fn yaml_entries_are_replaced_by_lines() {
    let text = "# head\nname: a   # the name\n\ncode: |\n  # not a comment\n  return 1\n\n# about tags\ntags: [x,\n  y]\ndraft: true # for now\n# tail\n";
    check_yaml(text, &[set("draft", json!(false))], &text.replace("true", "false"));
    check_yaml(text, &[set("name", json!("b#c: d"))], &text.replace("name: a ", "name: \"b#c: d\" "));
    check_yaml(
        text,
        &[set("tags", json!(["é", {"a": 1}]))],
        &text.replace("tags: [x,\n  y]", "tags: [\"é\", {\"a\": 1}]"),
    );
    check_yaml(
        text,
        &[set("code", json!("x\ny"))],
        &text.replace("|\n  # not a comment\n  return 1", "\"x\\ny\""),
    );
    check_yaml(text, &[unset("code")], &text.replace("code: |\n  # not a comment\n  return 1\n", ""));
    check_yaml(
        text,
        &[set("updateTimestamp", json!(5))],
        &text.replace("now\n", "now\nupdateTimestamp: 5\n"),
    );
    check_yaml(text, &[set("no", json!(null))], &text.replace("now\n", "now\n\"no\": null\n"));
    check_yaml(text, &[set("draft", json!(true))], text);
}

#[test]
fn yaml_of_other_shapes() {
    check_yaml("a: 1", &[set("bbbbbb", json!(2))], "a: 1\nbbbbbb: 2\n");
    check_yaml("a: 1\r\nb: 2\r\n", &[set("a", json!(3))], "\"a\": 3\r\nb: 2\r\n");
    check_yaml("---\na: 1\n...\n", &[set("tags", json!([]))], "---\na: 1\ntags: []\n...\n");
    check_yaml("  a: 1\n  b: 2\n", &[set("name", json!("x"))], "  a: 1\n  b: 2\n  name: \"x\"\n");
    check_yaml("a: |+\n  x\n\nb: 1\n", &[unset("a")], "\nb: 1\n");
    check_yaml("b: 1\na: |+\n  x\n\n", &[set("name", json!("x"))], "b: 1\na: |+\n  x\n\nname: \"x\"\n");
    check_yaml("# c\na: 1\n", &[unset("a")], "# c\n{}\n");
    check_yaml(
        "\"draft\": true\n'a': \"x # y\" # z\n",
        &[set("a", json!("q"))],
        "\"draft\": true\n\"a\": \"q\" # z\n",
    );
    check_yaml("{\"a\": 1 , \"b\":2}\n", &[set("b", json!(3))], "{\"a\": 1 , \"b\":3}\n");
    check_yaml("{a: 1, b: [x]}\n", &[set("a", json!(2))], "a: 2\nb:\n  - x\n");
    check_yaml("{}\n", &[set("a", json!(2))], "\"a\": 2\n");
    check_yaml("# c\na: 1\n", &[unset("a"), set("name", json!("x"))], "# c\nname: \"x\"\n");
}

#[test]
fn yaml_that_cannot_be_edited_is_rejected() {
    for text in [
        "a: &x [1]\nb: *x\n",
        "{a: 1, # why\n b: 2}\n",
        "? a\n: 1\n? b\n: 2\n",
        "{a: 18446744073709551615}\n",
    ] {
        let shown = edited(text, Format::Yaml, &[unset("a"), set("c", json!(1))]);
        assert!(shown.starts_with("error: the document cannot be changed in place"), "{text}: {shown}");
    }
}

#[test]
fn created_once_updated_always() {
    let stamped = |document: Value| format!("{:?}", stamp(document.as_object().unwrap(), 7));
    let both = "[(\"createTimestamp\", Some(Number(7))), (\"updateTimestamp\", Some(Number(7)))]";
    assert_eq!(stamped(json!({})), both);
    assert_eq!(stamped(json!({ "createTimestamp": null, "updateTimestamp": 3 })), both);
    assert_eq!(stamped(json!({ "createTimestamp": 0 })), "[(\"updateTimestamp\", Some(Number(7)))]");
}
