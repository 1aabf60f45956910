//! `Accept` and `Content-Type` as HTTP reads them: ranges, parameters and letters in any case.
//!
//! The SDK compares both headers as text. They are therefore rewritten into the one form that it takes.

use http::{HeaderMap, HeaderName, HeaderValue, header};

pub const JSON: &str = "application/json";
pub const EVENTS: &str = "text/event-stream";
const BOTH: &str = "application/json, text/event-stream";

/// Rewrites `Accept` if it accepts both forms of an answer. Otherwise it is left to the SDK, which answers 406.
pub fn normalise_accept(headers: &mut HeaderMap) {
    if only(headers, &header::ACCEPT) == Some(BOTH.as_bytes()) {
        return;
    }
    let accepted: Vec<&str> =
        headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let accepts =
        |wanted: &str| accepted.iter().flat_map(|value| value.split(',')).any(|range| covers(range, wanted));
    if accepts(JSON) && accepts(EVENTS) {
        headers.insert(header::ACCEPT, HeaderValue::from_static(BOTH));
    }
}

/// Rewrites `Content-Type` if it says JSON, once. Returns false for anything else.
pub fn normalise_json(headers: &mut HeaderMap) -> bool {
    let value = only(headers, &header::CONTENT_TYPE);
    if value == Some(JSON.as_bytes()) {
        return true;
    }
    let is_json = value
        .and_then(|value| std::str::from_utf8(value).ok())
        .is_some_and(|value| media_type(value).eq_ignore_ascii_case(JSON));
    if is_json {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    }
    is_json
}

/// The value of a header that is there exactly once.
pub fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h [u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.as_bytes())
}

fn media_type(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}

/// Does a range of `Accept`, such as `*/*` or `text/*;q=0.5`, cover this type?
fn covers(range: &str, wanted: &str) -> bool {
    let is_refused = range.split(';').skip(1).any(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or_default();
        name.trim().eq_ignore_ascii_case("q") && value.trim().parse().is_ok_and(|weight: f32| weight <= 0.0)
    });
    let range = media_type(range).to_ascii_lowercase();
    let group = range.strip_suffix("/*").map(|group| wanted.split('/').next() == Some(group));
    !is_refused && (range == "*/*" || range == wanted || group == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(values: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::ACCEPT, value.parse().unwrap());
        }
        normalise_accept(&mut headers);
        headers.get(header::ACCEPT).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn ranges_that_cover_both_forms_are_accepted() {
        for values in [
            &["*/*"][..],
            &["application/json, text/event-stream"],
            &["application/json", "text/event-stream"],
            &["Application/JSON;q=0.9,Text/Event-Stream ; q=0.1"],
            &["application/*, text/*"],
            &["text/html, */*;q=0.8"],
            &["text/event-stream,application/json,*/*;q=0"],
        ] {
            assert_eq!(accepted(values).as_deref(), Some(BOTH), "{values:?}");
        }
    }

    #[test]
    fn ranges_that_cover_one_form_or_none_are_left_alone() {
        for value in
            ["application/json", "text/*", "*/*;q=0", "", "application/jsonx, text/event-stream", "*"]
        {
            assert_eq!(accepted(&[value]).as_deref(), Some(value));
        }
        assert_eq!(accepted(&[]), None);
    }

    #[test]
    fn content_type_is_json_by_its_media_type() {
        let is_json = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::CONTENT_TYPE, value.parse().unwrap());
            }
            normalise_json(&mut headers)
        };
        for value in
            ["application/json", "Application/JSON", "application/json; charset=utf-8", " application/json "]
        {
            assert!(is_json(&[value]), "{value}");
        }
        for values in [
            &["application/jsonx"][..],
            &["application/json-patch+json"],
            &["text/plain"],
            &["application/json, text/plain"],
            &["application/json", "application/json"],
            &[],
        ] {
            assert!(!is_json(values), "{values:?}");
        }
    }
}
