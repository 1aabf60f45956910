//! What of a call is personal? What stands in a field that the tool calls so, there and wherever else it is repeated.

use serde_json::{Map, Value};
use toolgate_policy::Mask;
use toolgate_spec::FieldPattern;

/// Finds what the personal fields of a value hold, as secrets are found: by its bytes, from four characters on.
pub fn mask(fields: &[FieldPattern], value: &Value) -> Mask {
    let mut found = Vec::new();
    if !fields.is_empty() {
        collect(fields, value, &mut Vec::new(), &mut found);
    }
    finder(&found)
}

pub fn mask_of_members(fields: &[FieldPattern], members: &Map<String, Value>) -> Mask {
    let mut found = Vec::new();
    if !fields.is_empty() {
        collect_members(fields, members, &mut Vec::new(), &mut found);
    }
    finder(&found)
}

/// The same members, with a mark for what stands in a personal field, however short it is.
pub fn without(fields: &[FieldPattern], members: &Map<String, Value>) -> Map<String, Value> {
    members_without(fields, members, &mut Vec::new())
}

fn collect(fields: &[FieldPattern], value: &Value, path: &mut Vec<String>, found: &mut Vec<String>) {
    match value {
        _ if is_personal(fields, path) => take(value, found),
        Value::Array(items) => items.iter().for_each(|item| collect(fields, item, path, found)),
        Value::Object(members) => collect_members(fields, members, path, found),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn collect_members(
    fields: &[FieldPattern],
    members: &Map<String, Value>,
    path: &mut Vec<String>,
    found: &mut Vec<String>,
) {
    for (key, value) in members {
        path.push(key.clone());
        collect(fields, value, path, found);
        path.pop();
    }
}

fn take(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            found.push(text.clone());
            found.extend(pieces(text).map(str::to_owned));
        }
        Value::Number(number) => found.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| take(item, found)),
        Value::Object(members) => {
            for (key, value) in members {
                found.push(key.clone());
                take(value, found);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// The real name of a path, and the host of an address, hold only parts of what was passed.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let is_place = rest.len() < text.len() || rest.contains('/');
    rest.split(['/', '?', '#', '@', ':']).filter(move |_| is_place)
}

fn members_without(
    fields: &[FieldPattern],
    members: &Map<String, Value>,
    path: &mut Vec<String>,
) -> Map<String, Value> {
    let mut kept = Map::with_capacity(members.len());
    for (key, value) in members {
        path.push(key.clone());
        kept.insert(key.clone(), value_without(fields, value, path));
        path.pop();
    }
    kept
}

fn value_without(fields: &[FieldPattern], value: &Value, path: &mut Vec<String>) -> Value {
    match value {
        _ if is_personal(fields, path) => Value::String(MARK.to_owned()),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| value_without(fields, item, path)).collect())
        }
        Value::Object(members) => Value::Object(members_without(fields, members, path)),
        other => other.clone(),
    }
}

fn is_personal(fields: &[FieldPattern], path: &[String]) -> bool {
    fields.iter().any(|field| field.specificity_at(path).is_some())
}

/// Where there is too much to look for in every text, no text is shown.
fn finder(found: &[String]) -> Mask {
    let bytes: usize = found.iter().map(String::len).sum();
    if bytes > MOST_BYTES { Mask::everything() } else { Mask::new(found) }
}

const MARK: &str = "[PERSONAL]";
const MOST_BYTES: usize = 16 * 1_024;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(patterns: &[&str]) -> Vec<FieldPattern> {
        patterns.iter().map(|pattern| FieldPattern::parse(pattern).unwrap()).collect()
    }

    #[track_caller]
    fn check(patterns: &[&str], value: &Value, text: &str, expect: &str) {
        assert_eq!(mask(&fields(patterns), value).text(text), expect, "{patterns:?} {value}");
    }

    #[test]
    fn what_a_personal_field_holds_is_found_elsewhere() {
        let ann =
            json!({ "customer": { "mail": "ann@example.org", "phone": [5_550_123_i64] }, "note": "plain" });
        check(&["..mail"], &ann, "no mail for ann@example.org, plain", "no mail for ***, plain");
        check(&[".customer"], &ann, "call 5550123 or ann@example.org", "call *** or ***");
        check(&[".customer.phone"], &ann, "call 5550123 or ann@example.org", "call *** or ann@example.org");
        check(&["..mail"], &ann, "in base64 YW5uQGV4YW1wbGUub3Jn", "in base64 ***");
        check(&[], &ann, "ann@example.org", "ann@example.org");
        check(&["..mail"], &json!({ "mail": "ann" }), "ann", "ann");
    }

    #[test]
    fn parts_of_paths_and_addresses_are_found() {
        let path = json!({ "path": "notes/../ann-smith.txt", "url": "https://ann.example:8080/a?b" });
        check(&[".path"], &path, "/srv/ann-smith.txt is outside", "/srv/*** is outside");
        check(&[".url"], &path, "ann.example is unknown", "*** is unknown");
    }

    #[test]
    fn what_is_too_much_to_look_for_hides_every_text() {
        check(&["a"], &json!({ "a": "x".repeat(20_000) }), "anything", "***");
    }

    #[test]
    fn a_mark_stands_for_each_personal_field() {
        let members = json!({ "a": "x", "b": [{ "mail": "m" }, { "n": 1 }] });
        let members = members.as_object().unwrap();
        let kept = without(&fields(&["..mail", ".a"]), members);
        assert_eq!(Value::Object(kept), json!({ "a": MARK, "b": [{ "mail": MARK }, { "n": 1 }] }));
        let kept = without(&fields(&["*"]), members);
        assert_eq!(Value::Object(kept), json!({ "a": MARK, "b": MARK }));
    }
}
