//! Escapes characters in a result that would act on a terminal or deceive its reader.

use std::borrow::Cow;

use serde_json::Value;
use toolgate_policy::DistinctMembers;
use toolgate_spec::neutral;

/// Escapes every text, keys included, and returns whether anything changed.
pub fn clean(value: Value) -> (Value, bool) {
    let mut is_changed = false;
    let value = cleaned(value, &mut is_changed);
    (value, is_changed)
}

fn cleaned(value: Value, is_changed: &mut bool) -> Value {
    match value {
        Value::String(text) => match neutral(&text) {
            Cow::Borrowed(_) => Value::String(text),
            Cow::Owned(shown) => {
                *is_changed = true;
                Value::String(shown)
            }
        },
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| cleaned(item, is_changed)).collect())
        }
        Value::Object(members) => {
            let is_neutral = |key: &str| matches!(neutral(key), Cow::Borrowed(_));
            if members.keys().all(|key| is_neutral(key)) {
                let members = members.into_iter().map(|(key, value)| (key, cleaned(value, is_changed)));
                return Value::Object(members.collect());
            }
            *is_changed = true;
            // Keys that become equal by escaping are kept apart.
            let mut kept = DistinctMembers::with_capacity(members.len());
            for (key, value) in members {
                kept.insert(neutral(&key).into_owned(), cleaned(value, is_changed));
            }
            Value::Object(kept.into_members())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_and_keys_are_escaped_at_every_depth() {
        let came = json!({ "a\u{200b}": [{ "b": "\u{1b}[2J" }, 1, null], "a": "x\u{202e}y" });
        let expect = json!({ "a\\u{200b}": [{ "b": "\\u{1b}[2J" }, 1, null], "a": "x\\u{202e}y" });
        assert_eq!(clean(came), (expect.clone(), true));
        assert_eq!(clean(expect.clone()), (expect, false));
    }

    #[test]
    fn no_key_is_lost() {
        let came = json!({ "a\\u{200b}": 1, "a\u{200b}": 2 });
        assert_eq!(clean(came).0.as_object().unwrap().len(), 2);
    }

    /// Each of 14 characters is escaped or not, so 2^14 keys become equal.
    #[test]
    fn many_keys_that_become_equal_are_kept() {
        let spelling = |bits: u32| -> String {
            (0..14).map(|bit| if (bits >> bit) & 1 == 0 { "\u{200b}" } else { "\\u{200b}" }).collect()
        };
        let came: serde_json::Map<String, Value> =
            (0..1 << 14).map(|bits| (spelling(bits), json!(1))).collect();
        assert_eq!(clean(Value::Object(came)).0.as_object().unwrap().len(), 1 << 14);
    }
}
