use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Cases in the sense of the URL standard: `parse` holds input, base and what comes out; `set` holds an address, one of
/// its parts, the new value and what comes out.
#[derive(Deserialize)]
struct Corpus {
    parse: Vec<(String, Option<String>, Option<String>)>,
    set: Vec<(String, String, String, String)>,
}

fn corpus() -> Corpus {
    serde_json::from_str(include_str!("corpus.json")).unwrap()
}

fn href(answer: &Result<Answer, HelperError>) -> Option<String> {
    match answer {
        Ok(Answer::Json(parts)) => {
            let parts: Vec<String> = serde_json::from_str(parts).unwrap();
            parts.first().cloned()
        }
        _ => None,
    }
}

#[test]
fn addresses_are_read_as_browsers_read_them() {
    for (input, base, expected) in corpus().parse {
        let found = href(&parse(&json!([input, base]).to_string()));
        // A known difference that has gone away must leave the list.
        assert_eq!(
            found == expected,
            !KNOWN_DIFFERENCES.contains(&&*input),
            "{input:?} against {base:?}: {found:?}"
        );
    }
}

/// The library refuses the first, and leaves the drive's bar in the second. Neither reaches another host.
const KNOWN_DIFFERENCES: &[&str] = &["///g", "file:///C|/a"];

#[test]
fn addresses_are_changed_as_browsers_change_them() {
    for (before, part, value, expected) in corpus().set {
        // Nothing means that the value is ignored.
        let found = href(&set(&json!([before, part, value]).to_string())).unwrap_or_else(|| before.clone());
        assert_eq!(found, expected, "{part} of {before:?} to {value:?}");
    }
}

#[test]
fn all_parts_are_told() {
    let answer = parse(r#"["https://u:p%40@Example.com:8080/a/./b?c=d#e", null]"#);
    let expected = json!([
        "https://u:p%40@example.com:8080/a/b?c=d#e",
        "https:",
        "u",
        "p%40",
        "example.com:8080",
        "example.com",
        "8080",
        "/a/b",
        "?c=d",
        "#e",
        "https://example.com:8080",
    ]);
    assert_eq!(answer, Ok(Answer::Json(expected.to_string())));
}

#[test]
fn a_path_never_becomes_a_host() {
    for (before, value) in [("web+x:/a", "//evil/b"), ("web+x:/a", "/.//evil/b"), ("web+x:/a", "/b/..//evil")]
    {
        let after =
            href(&set(&json!([before, "pathname", value]).to_string())).unwrap_or_else(|| before.to_owned());
        assert_eq!(Url::parse(&after).unwrap().host(), None, "{after}");
    }
}

#[test]
fn addresses_have_a_longest_length() {
    let long = format!("http://h/{}", "a".repeat(LONGEST));
    for answer in [
        parse(&json!([long, null]).to_string()),
        parse(&json!(["x", long]).to_string()),
        set(&json!(["http://h/", "hash", long]).to_string()),
        set(&json!([long, "hash", "x"]).to_string()),
    ] {
        assert_eq!(answer.map_err(|error| error.reason), Err("invalid-url".to_owned()));
    }
}

#[test]
fn data_may_be_longer() {
    let data = |length: usize| parse(&json!([format!("DATA:,{}", "a".repeat(length)), null]).to_string());
    assert!(href(&data(LONGEST)).is_some_and(|href| href.len() == LONGEST + 6));
    assert!(data(LONGEST_DATA).is_err());
}

#[test]
fn questions_of_another_shape_are_refused() {
    for text in ["", "[]", "[1]", "{}", r#"["a"]"#, r#"["http://h/", "origin", "x"]"#] {
        assert!(parse(text).is_err() || text.contains("origin"), "{text}");
        assert!(set(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn nothing_panics_and_what_is_read_reads_the_same(
        input in r"(http|file|foo|ws|data|web\+x)?:?[/\\]{0,3}[a-zA-Z0-9:@/\\?#\[\]%. |^<>ü。\t-]{0,24}",
        part in "protocol|username|password|host|hostname|port|pathname|search|hash",
        value in r"[/\\]{0,3}[a-zA-Z0-9:@/\\?#\[\]%. |^<>ü。\t-]{0,16}",
    ) {
        let Some(first) = href(&parse(&json!([input, null]).to_string())) else { return Ok(()) };
        prop_assert_eq!(href(&parse(&json!([first, null]).to_string())), Some(first.clone()));
        if let Some(changed) = href(&set(&json!([first, part, value]).to_string())) {
            prop_assert_eq!(href(&parse(&json!([changed, null]).to_string())), Some(changed.clone()));
        }
        prop_assert!(parse(&json!([value, first]).to_string()).is_ok());
    }
}
