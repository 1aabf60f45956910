use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(table: &str, options: &Value, expect: &Value) {
    let Ok(HelperAnswer::Json(answer)) = parse(&json!([table, options]).to_string()) else {
        panic!("refused")
    };
    assert_eq!(&serde_json::from_str::<Value>(&answer).unwrap(), expect);
}

#[track_caller]
fn check_refused(table: &str, options: &Value, expect: &str) {
    let error = parse(&json!([table, options]).to_string()).unwrap_err();
    assert_eq!(format!("{} {}", error.class.name(), error.reason), expect);
}

#[test]
fn rows_are_arrays_of_strings() {
    let table = "\u{feff}a,b\r\n1,\"two, \"\"three\"\"\nfour\"\r\n\r\n5\r\n";
    check(table, &json!({}), &json!([["a", "b"], ["1", "two, \"three\"\nfour"], ["5"]]));
    check("", &json!({}), &json!([]));
    check("\n\n", &json!({"header": true}), &json!([]));
    check("a, b ,\"c", &json!({}), &json!([["a", " b ", "c"]]));
}

#[test]
fn header_names_the_columns() {
    let expect = json!([{"a": "1", "b": "2"}, {"a": "3"}, {"a": "4", "b": "5"}]);
    check("a;b\n1;2\n3\n4;5;6\n", &json!({"header": true, "delimiter": ";ignored"}), &expect);
    check("k,k,__proto__\n1,2,3", &json!({"header": true}), &json!([{"k": "2", "__proto__": "3"}]));
}

#[test]
fn odd_delimiters() {
    check("a\tb", &json!({"delimiter": "\t"}), &json!([["a", "b"]]));
    check("a,b", &json!({"delimiter": ""}), &json!([["a", "b"]]));
    for delimiter in ["\"", "\n", "\r", "é", "\u{0}"] {
        check_refused("a", &json!({"delimiter": delimiter}), "INVALID_INPUT invalid-delimiter");
    }
    check_refused("a", &json!({"header": "yes"}), "INVALID_INPUT invalid-options");
    check_refused("a", &json!(7), "INVALID_INPUT invalid-options");
}

/// The header is repeated for every row, so a small text would cause a huge result.
#[test]
fn long_header_is_limited() {
    let table = format!("{}\n{}", "h".repeat(100_000), "1\n".repeat(100_000));
    check_refused(&table, &json!({"header": true}), "HELPER_RUNTIME result-too-large");
}

/// Ten thousand columns of one name are searched once, not once per column.
#[test]
fn many_columns_of_one_name() {
    let table = format!("{}k\n{}1", "k,".repeat(200_000), "1,".repeat(200_000));
    check(&table, &json!({"header": true}), &json!([{"k": "1"}]));
}

/// One row of delimiters only: each costs the parser far more than one byte.
#[test]
fn too_many_values_are_refused_before_parsing() {
    for table in [
        ",".repeat(MAX_VALUES + 1),
        // A quote that does not open a value does not hide delimiters.
        format!("a\"{}", ",".repeat(MAX_VALUES + 1)),
        format!("\"{}", ",".repeat(MAX_VALUES + 1)),
        ",".repeat(MAX_VALUES),
        "x".repeat(MAX_INPUT + 1),
        "\n".repeat(MAX_INPUT + 1),
    ] {
        check_refused(&table, &json!({}), "HELPER_RUNTIME result-too-large");
        check_refused(&table, &json!({"header": true}), "HELPER_RUNTIME result-too-large");
    }
}

/// The rows do not repeat these names, so only the check of the header applies.
#[test]
fn header_with_too_many_columns_is_refused() {
    let names = (0..=MAX_COLUMNS).map(|number| number.to_string()).collect::<Vec<_>>();
    check_refused(&names.join(","), &json!({"header": true}), "HELPER_RUNTIME result-too-large");
    check(&names[1..].join(","), &json!({"header": true}), &json!([]));
}
