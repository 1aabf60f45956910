use serde_json::json;

use super::*;

#[track_caller]
fn check(text: &str, expect: &Value) {
    match parse(text) {
        Ok(HelperAnswer::Json(answer)) => {
            assert_eq!(&serde_json::from_str::<Value>(&answer).unwrap(), expect);
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn reason(text: &str) -> String {
    match parse(text) {
        Ok(answer) => panic!("{answer:?}"),
        Err(error) => error.reason,
    }
}

#[test]
fn plain_data() {
    check("", &Value::Null);
    check(
        "a: 1\nb: [x, 2.5, true, ~, yes]\nc: |\n  one\n  two\n",
        &json!({"a": 1, "b": ["x", 2.5, true, null, "yes"], "c": "one\ntwo\n"}),
    );
    check("---\n- 2024-01-05\n- '7'\n- 0x1F\n", &json!(["2024-01-05", "7", 31]));
    check("1: a\ntrue: b\n1.50: c\n", &json!({"1": "a", "true": "b", "1.50": "c"}));
    check("__proto__: {x: 1}", &json!({"__proto__": {"x": 1}}));
}

#[test]
fn numbers_that_json_lacks() {
    check("[.nan, .inf, -.inf]", &json!([".nan", ".inf", "-.inf"]));
    check("18446744073709551615", &json!(18_446_744_073_709_551_615_u64));
}

#[test]
fn aliases_and_merge_keys() {
    check(
        "a: &x {k: 1}\nb: *x\nc:\n  <<: *x\n  l: 2\n",
        &json!({"a": {"k": 1}, "b": {"k": 1}, "c": {"k": 1, "l": 2}}),
    );
}

#[test]
fn unsupported_yaml_is_refused() {
    let texts = [
        "a: [",
        "a: b: c",
        "*nobody",
        "a: 1\na: 2",
        "1: a\n'1': b",
        "!ruby/object:X {}",
        "--- 1\n--- 2",
        "a: *a",
        "? [a]\n: b",
    ];
    for text in texts {
        assert_eq!(reason(text), "parse-failed", "{text}");
    }
}

/// A careless parser would create an object for a tag that names a class.
#[test]
fn tags_create_no_objects() {
    assert_eq!(reason("!!javax.script.ScriptEngineManager [x]"), "parse-failed");
    assert_eq!(reason("!!python/object/apply:os.system ['id']"), "parse-failed");
    assert_eq!(reason("!include /etc/passwd"), "parse-failed");
}

#[test]
fn billion_laughs_is_refused() {
    use fmt::Write;
    let mut text = String::from("a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n");
    for level in 1..10 {
        let again = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(text, "a{level}: &a{level} [{again}]").unwrap();
    }
    assert_eq!(reason(&text), "parse-failed");
}

/// Few events, but each repeats a long text.
#[test]
fn repeated_long_text_is_refused() {
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 5000].join(", "));
    assert_eq!(reason(&text), "result-too-large");
}

#[test]
fn nested_data() {
    check("[]", &json!([]));
    check("{}", &json!({}));
    check(
        "[[], [{}, [1, 2]], {a: [], b: {c: [x]}}]",
        &json!([[], [{}, [1, 2]], {"a": [], "b": {"c": ["x"]}}]),
    );
    check("\"a\\\"b\": \"c\\n\\u0001\"", &json!({"a\"b": "c\n\u{1}"}));
}

#[test]
fn deep_nesting() {
    assert_eq!(reason(&"[".repeat(100_000)), "parse-failed");
    assert_eq!(reason(&"- ".repeat(100_000)), "parse-failed");
    assert_eq!(reason(&"{a: ".repeat(100_000)), "parse-failed");
    let deep = format!("{}{}", "[".repeat(MAX_DEPTH - 1), "]".repeat(MAX_DEPTH - 1));
    assert!(parse(&deep).is_ok());
}
