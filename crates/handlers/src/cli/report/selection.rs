//! Which part of a JSON value is wanted? `.a.b` one field, `.items[].name` one of each element, `..name` at any depth.

use std::collections::HashSet;

use serde_json::Value;
use toolgate_spec::FieldPattern;

use super::json::MOST_VALUES;

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Selection {
    steps: Vec<Step>,
    yields: Yields,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Step {
    Name(String),
    /// Every element of a list.
    Each,
    /// Every field of an object, every element of a list.
    Any,
    /// The value itself and everything below it.
    Deep,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Yields {
    One,
    List,
}

impl Selection {
    /// The same paths that name fields elsewhere in a manifest.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = |why: String| {
            format!("`{text}` selects nothing: {why}; write `.items[].name`, `.a.b` or `..name`")
        };
        FieldPattern::parse(text).map_err(bad)?;
        let mut steps = Vec::new();
        let rest = match text {
            "." => "",
            "*" => {
                steps.push(Step::Deep);
                ""
            }
            _ => match text.strip_prefix("*.").or_else(|| text.strip_prefix("..")) {
                Some(rest) => {
                    steps.push(Step::Deep);
                    rest
                }
                None => text.strip_prefix('.').unwrap_or(text),
            },
        };
        for (index, name) in rest.split('.').enumerate().filter(|_| !rest.is_empty()) {
            // An empty name is what stands between two dots.
            if name.is_empty() && index > 0 {
                steps.push(Step::Deep);
                continue;
            }
            let bare = name.trim_end_matches("[]");
            match bare {
                "" => {}
                "*" => steps.push(Step::Any),
                bare => steps.push(Step::Name(bare.to_owned())),
            }
            let lists = (name.len() - bare.len()) / 2;
            steps.extend(std::iter::repeat_n(Step::Each, lists));
        }
        let is_one = steps.iter().all(|step| matches!(step, Step::Name(_)));
        Ok(Self { steps, yields: if is_one { Yields::One } else { Yields::List } })
    }

    /// One value, `null` where it is missing; or the list of all that is found.
    pub fn of(&self, value: &Value) -> Result<Value, String> {
        let mut found = vec![value];
        for step in &self.steps {
            found = self.after(step, &found)?;
        }
        Ok(match self.yields {
            Yields::One => found.first().map_or(Value::Null, |value| (*value).clone()),
            Yields::List => {
                let mut room = Room::default();
                found.iter().try_for_each(|value| room.take(value))?;
                found.into_iter().cloned().collect()
            }
        })
    }

    fn after<'v>(&self, step: &Step, from: &[&'v Value]) -> Result<Vec<&'v Value>, String> {
        let mut found = Vec::new();
        for value in from {
            match (step, value) {
                (Step::Name(name), Value::Object(members)) => found.extend(members.get(name)),
                (Step::Name(name), Value::Array(_)) if !self.is_searching() => {
                    return Err(format!(
                        "the output has a list where `{name}` is looked for; write `[].{name}`"
                    ));
                }
                (Step::Each, Value::Array(items)) => found.extend(items),
                (Step::Each, Value::Null) | (Step::Name(_), _) => {}
                (Step::Each, _) if !self.is_searching() => {
                    return Err("the output has no list where the selection says `[]`".to_owned());
                }
                (Step::Each, _) => {}
                (Step::Any, value) => found.extend(children(value)),
                (Step::Deep, value) => descend(value, &mut found),
            }
        }
        // What lies in two of the values is still one; otherwise each `..` would multiply what the last one found.
        let mut seen = HashSet::new();
        found.retain(|value| seen.insert(std::ptr::from_ref::<Value>(value)));
        Ok(found)
    }

    /// Where anything may come by, what does not fit is passed over.
    fn is_searching(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Deep | Step::Any))
    }
}

/// For all that is found, together: what lies in two of the values is copied twice.
struct Room {
    values: usize,
    bytes: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { values: MOST_VALUES, bytes: MOST_BYTES }
    }
}

impl Room {
    fn take(&mut self, value: &Value) -> Result<(), String> {
        match value {
            Value::String(text) => self.take_one(text.len()),
            Value::Array(items) => {
                self.take_one(0)?;
                items.iter().try_for_each(|item| self.take(item))
            }
            Value::Object(members) => {
                self.take_one(0)?;
                members.iter().try_for_each(|(name, value)| {
                    self.take_one(name.len())?;
                    self.take(value)
                })
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => self.take_one(0),
        }
    }

    fn take_one(&mut self, bytes: usize) -> Result<(), String> {
        let too_much = |most: usize, what: &str| {
            format!("the selection comes to more than {most} {what}; let the command select what is needed")
        };
        self.values = self.values.checked_sub(1).ok_or_else(|| too_much(MOST_VALUES, "names and values"))?;
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(|| too_much(MOST_BYTES, "bytes"))?;
        Ok(())
    }
}

/// As much as a command may write at most.
const MOST_BYTES: usize = 16 << 20;

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}

/// JSON that was parsed is at most 128 levels deep.
fn descend<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    found.push(value);
    for child in children(value) {
        descend(child, found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(path: &str, expect: &Value) {
        let value = json!({
            "items": [{ "name": "a", "tags": ["x", "y"] }, { "name": "b" }],
            "meta": { "name": "m", "count": 2 },
        });
        match Selection::parse(path).and_then(|selection| selection.of(&value)) {
            Ok(found) => assert_eq!(&found, expect, "{path}"),
            Err(why) => assert!(why.contains(expect["error"].as_str().unwrap_or("?")), "{path}: {why}"),
        }
    }

    #[test]
    fn one_field_is_itself_and_many_are_a_list() {
        check(".meta.count", &json!(2));
        check("meta", &json!({ "name": "m", "count": 2 }));
        check(".meta.none.deeper", &Value::Null);
        check(".items[].name", &json!(["a", "b"]));
        check(".items[].tags[]", &json!(["x", "y"]));
        check(".meta.*", &json!(["m", 2]));
        check("..name", &json!(["a", "b", "m"]));
        check("*.count", &json!([2]));
        check(".items..name", &json!(["a", "b"]));
    }

    /// Each of the values around a list holds all of it once more.
    #[test]
    fn what_is_found_many_times_over_is_not_copied() {
        let nested = |innermost: Value| (0..120).fold(innermost, |inner, _| json!({ "a": inner }));
        let of = |path: &str, value: &Value| Selection::parse(path).unwrap().of(value);
        let many = nested(json!(vec![0; 10_000]));
        let long = nested(json!("x".repeat(1 << 20)));
        for path in ["..a", "*", "..*"] {
            for value in [&many, &long] {
                let why = of(path, value).unwrap_err();
                assert!(why.contains("more than") && why.contains("select what is needed"), "{path}: {why}");
            }
        }
        assert_eq!(of("..a", &nested(json!(1))).unwrap().as_array().unwrap().len(), 120);
        assert!(of(".a", &many).is_ok());
    }

    #[test]
    fn a_path_that_does_not_fit_the_output_is_told() {
        check(".items.name", &json!({ "error": "write `[].name`" }));
        check(".meta[].name", &json!({ "error": "no list" }));
        check(".a|b", &json!({ "error": "selects nothing" }));
    }
}
