use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Cases of the URL standard: `parse` has input, base and result; `set` has a URL, a part, the new value and the
/// result.
#[derive(Deserialize)]
struct Corpus {
    parse: Vec<(String, Option<String>, Option<String>)>,
    set: Vec<(String, String, String, String)>,
}

fn corpus() -> Corpus {
    serde_json::from_str(include_str!("corpus.json")).unwrap()
}

fn href(answer: &Result<HelperAnswer, HelperError>) -> Option<String> {
    match answer {
        Ok(HelperAnswer::Json(parts)) => {
            let parts: Vec<String> = serde_json::from_str(parts).unwrap();
            parts.first().cloned()
        }
        _ => None,
    }
}

#[test]
fn urls_are_parsed_as_in_browsers() {
    for (input, base, expected) in corpus().parse {
        let found = href(&parse(&json!([input, base]).to_string()));
        // A known difference that no longer exists must be removed from the list.
        assert_eq!(
            found == expected,
            !KNOWN_DIFFERENCES.contains(&&*input),
            "{input:?} against {base:?}: {found:?}"
        );
    }
}

/// The library rejects the first and keeps the `|` of the drive in the second. Neither reaches another host.
const KNOWN_DIFFERENCES: &[&str] = &["///g", "file:///C|/a"];

#[test]
fn urls_are_changed_as_in_browsers() {
    for (before, part, value, expected) in corpus().set {
        // Nothing means that the value is ignored.
        let found = href(&set(&json!([before, part, value]).to_string())).unwrap_or_else(|| before.clone());
        assert_eq!(found, expected, "{part} of {before:?} to {value:?}");
    }
}

#[test]
fn all_parts_are_returned() {
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
    assert_eq!(answer, Ok(HelperAnswer::Json(expected.to_string())));
}

#[test]
fn path_never_becomes_a_host() {
    for (before, value) in [("web+x:/a", "//evil/b"), ("web+x:/a", "/.//evil/b"), ("web+x:/a", "/b/..//evil")]
    {
        let after =
            href(&set(&json!([before, "pathname", value]).to_string())).unwrap_or_else(|| before.to_owned());
        assert_eq!(Url::parse(&after).unwrap().host(), None, "{after}");
    }
}

#[test]
fn url_length_is_limited() {
    let long = format!("http://h/{}", "a".repeat(MAX_LENGTH));
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
fn data_urls_may_be_longer() {
    let data = |length: usize| parse(&json!([format!("DATA:,{}", "a".repeat(length)), null]).to_string());
    assert!(href(&data(MAX_LENGTH)).is_some_and(|href| href.len() == MAX_LENGTH + 6));
    assert!(data(MAX_DATA).is_err());
}

#[test]
fn malformed_questions_are_refused() {
    for text in ["", "[]", "[1]", "{}", r#"["a"]"#, r#"["http://h/", "origin", "x"]"#] {
        assert!(parse(text).is_err() || text.contains("origin"), "{text}");
        assert!(set(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn parsing_never_panics_and_is_stable(
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
