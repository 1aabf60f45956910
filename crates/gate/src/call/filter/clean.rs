//! What of a result acts on its reader instead of being read?

use std::borrow::Cow;

use serde_json::{Map, Value};
use toolgate_spec::neutral;

/// The same value with every text, also of keys, made neutral.
pub fn clean(value: Value) -> Value {
    match value {
        Value::String(text) => match neutral(&text) {
            Cow::Borrowed(_) => Value::String(text),
            Cow::Owned(shown) => Value::String(shown),
        },
        Value::Array(items) => Value::Array(items.into_iter().map(clean).collect()),
        Value::Object(members) => {
            let is_neutral = |key: &str| matches!(neutral(key), Cow::Borrowed(_));
            if members.keys().all(|key| is_neutral(key)) {
                return Value::Object(members.into_iter().map(|(key, value)| (key, clean(value))).collect());
            }
            let mut cleaned = Map::with_capacity(members.len());
            for (key, value) in members {
                let mut key = neutral(&key).into_owned();
                // Two keys that differed only in what nobody sees stay two.
                while cleaned.contains_key(&key) {
                    key.push('′');
                }
                cleaned.insert(key, clean(value));
            }
            Value::Object(cleaned)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_and_keys_at_every_depth() {
        let came = json!({ "a\u{200b}": [{ "b": "\u{1b}[2J" }, 1, null], "a": "x\u{202e}y" });
        let expect = json!({ "a\\u{200b}": [{ "b": "\\u{1b}[2J" }, 1, null], "a": "x\\u{202e}y" });
        assert_eq!(clean(came), expect);
    }

    #[test]
    fn no_key_is_lost() {
        let came = json!({ "a\\u{200b}": 1, "a\u{200b}": 2 });
        assert_eq!(clean(came).as_object().unwrap().len(), 2);
    }
}
