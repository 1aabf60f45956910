//! Redaction removes secrets from texts and changes nothing else.

use serde_json::json;

use super::*;

fn redacted(value: Value) -> Value {
    redact(&Detector::shipped().unwrap(), value, RedactionAudience::Caller).value
}

/// Well formed, and not in use anywhere.
fn token() -> String {
    format!("xox{}-481236795021-730918264513-{}", 'b', "q7Zk2mVx9TbLw4Rs8NyPd3Hc")
}

pub fn key_lines() -> Vec<String> {
    let body = ["rG3nmfZN/3yKJyF3GINhFLUTv7Zh0eLhjopfdLi+YuAzWLLazZACmtxyT/SDvrrS"; 5];
    let edge = |word: &str| format!("-----{word} PRIVATE KEY-----");
    let inside = body.iter().map(|line| (*line).to_owned());
    [edge("BEGIN")].into_iter().chain(inside).chain([edge("END")]).collect()
}

/// Text before a secret does not shift the redacted part, however JSON escapes it.
#[test]
fn redacted_part_is_exactly_the_secret() {
    let value = json!({
        "": [], "e": {}, "q\"\\\n\u{1}\u{7f}é": [1.5, -2, null, true, "\t\"\u{8}\u{c}\r"],
        "s": format!("a\n\"{}\"\nz", token()),
    });
    let clean = redacted(value.clone());
    let mark = "[REDACTED:";
    let text = clean["s"].as_str().unwrap();
    assert!(text.starts_with(&format!("a\n\"{mark}")) && text.ends_with("]\"\nz"), "{text}");
    let mut rest = clean;
    rest["s"] = value["s"].clone();
    assert_eq!(rest, value);
}

#[test]
fn secret_identified_by_field_name_is_redacted_alone() {
    let value = json!({ "before": "\n\"", "client_secret": "abcDEF123", "after": "plain" });
    let clean = redacted(value);
    assert!(clean["client_secret"].as_str().unwrap().starts_with("[REDACTED:"), "{clean}");
    assert_eq!((&clean["before"], &clean["after"]), (&json!("\n\""), &json!("plain")));
}

#[test]
fn numeric_password_is_redacted() {
    let clean = redacted(
        json!({ "user": 84_736_251, "password": 84_736_251, "list": [{ "pwd": 1_234_567 }, 84_736_251] }),
    );
    let mark = "[REDACTED:password:generic]";
    assert_eq!(clean, json!({ "user": 84_736_251, "password": mark, "list": [{ "pwd": mark }, 84_736_251] }));
    let about = json!({ "password_length": 12_345_678, "passwordChanged": 1_735_689_600, "password": 12 });
    assert_eq!(redacted(about.clone()), about);
}

#[test]
fn key_keeps_its_lines_and_items() {
    let lines = key_lines();
    let clean = redacted(json!(lines.join("\n")));
    assert_eq!(clean.as_str().unwrap().split('\n').count(), lines.len());
    assert!(!clean.to_string().contains("rG3nmfZN"), "{clean}");
    let clean = redacted(json!({ "lines": lines, "after": "x" }));
    assert_eq!(clean["lines"].as_array().unwrap().len(), lines.len());
    assert_eq!(clean["after"], "x");
    assert!(!clean.to_string().contains("rG3nmfZN"), "{clean}");
}

/// Text between the lines of a key is not part of it, unless it could be.
#[test]
fn names_and_numbers_between_key_lines_stay() {
    let rows: Vec<Value> =
        key_lines().iter().enumerate().map(|(n, line)| json!({ "n": n, "the line": line })).collect();
    let clean = redacted(json!({ "rows": rows, "after": 7 }));
    assert!(!clean.to_string().contains("rG3nmfZN"), "{clean}");
    assert_eq!(clean["after"], 7);
    for (n, row) in clean["rows"].as_array().unwrap().iter().enumerate() {
        assert_eq!(row["n"], n, "{row}");
        assert!(row["the line"].as_str().unwrap().starts_with("[REDACTED:"), "{row}");
    }
    let [begin, line, .., end] = &key_lines()[..] else { panic!() };
    let clean = redacted(json!({ "a": format!("{begin}\n{line}"), line.as_str(): line, "b": end }));
    assert!(!clean.to_string().contains("rG3nmfZN"), "{clean}");
}

#[test]
fn member_with_a_secret_name_is_kept() {
    let other = token().replace("q7Z", "Cd4");
    let clean = redacted(json!({ token(): 1, other: 2 }));
    assert_eq!(clean.as_object().unwrap().len(), 2, "{clean}");
    assert!(!clean.to_string().contains("q7Z") && !clean.to_string().contains("Cd4"), "{clean}");
}

/// With quadratic cost this would take hours.
#[test]
fn many_secret_names_are_kept_apart() {
    let name = |n: u32| token().replace("730918264513", &format!("{n:012}"));
    let many: Map<String, Value> = (0..5_000).map(|n| (name(n), json!(n))).collect();
    let clean = redacted(Value::Object(many));
    assert_eq!(clean.as_object().unwrap().len(), 5_000);
    assert!(!clean.to_string().contains("q7Z"), "a name came through");
}

/// A quote or a backslash in a password does not end it: all of it is redacted, at any depth of JSON.
#[test]
fn passwords_with_quotes_and_backslashes_are_redacted_whole() {
    for sign in ["'", "\"", "`", "\\", "\\\\", "\\\""] {
        let password = format!("Ab{sign}3dE6gH9xQ");
        let inner = json!({ "password": password, "port": 5432 });
        for value in [
            inner.clone(),
            json!({ "log": inner.to_string() }),
            json!([json!([inner.to_string()]).to_string()]),
        ] {
            let clean = redacted(value).to_string();
            assert!(!clean.contains("3dE6") && !clean.contains("9xQ"), "{sign}: {clean}");
            assert!(clean.contains("5432"), "{sign}: {clean}");
        }
    }
}

/// Punctuation in a key and text after it inside the quotes do not hide it.
#[test]
fn keys_with_punctuation_and_line_ends_are_redacted() {
    for text in [
        "api_key = \"aB3$dE5fG7hI9jK1lM2n\"",
        "API_KEY=\"aB3kE5fG7hI9jK1lM2n#Pd3Hc\"",
        "SECRET_KEY = 'aB3@dE5fG7hI9jK1lM2n'",
        "{\"api_key\":\"aB3kE5fG7hI9jK1lM2nQx\\n\"}",
        "{\"access_token\": \"aB3kE5fG7hI9jK1lM2nQx\\r\\n\"}",
        "api_key: \"aB3kE5fG7hI9jK1lM2nQx \"",
        "{\"token\": \"aB3kE5fG7hI9jK1lM2nQx,aB3kE5fG7hI9jK1lM2nQy\"}",
    ] {
        let clean = redacted(json!(text)).to_string();
        assert!(!clean.contains("E5fG7hI9"), "{clean}");
    }
}

/// `DB_PASSWORD=x` in one field identifies `x` in all others, before and after it.
#[test]
fn value_found_in_one_field_is_redacted_in_all() {
    let password = "q7Zk-2mVx9T";
    for value in [
        json!({ "log": format!("connecting with {password}"), "env": format!("A=1\nDB_PASSWORD={password}\nB=2") }),
        json!({ "env": format!("A=1\nDB_PASSWORD={password}\nB=2"), "log": [format!("connecting with {password}"), 1] }),
        json!({ "db_password": password, "log": format!("connecting with {password}") }),
        json!({ "url": format!("acme://app:{password}@db/x"), password: "as a name" }),
    ] {
        for reader in [RedactionAudience::Caller, RedactionAudience::Journal] {
            let clean = redact(&Detector::shipped().unwrap(), value.clone(), reader).value.to_string();
            assert!(!clean.contains(password), "{clean}");
        }
    }
    let common = json!({ "db_password": "test", "log": "a test of it" });
    assert_eq!(redacted(common.clone())["log"], common["log"]);
}
