//! Keeps object members separate if redaction makes their keys equal.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Members of an object whose keys were changed. A key never overwrites another one.
#[derive(Debug, Default)]
pub struct DistinctMembers {
    members: Map<String, Value>,
    /// The last number given to each key. Without it, many equal keys would take quadratic time.
    numbers: HashMap<String, usize>,
}

impl DistinctMembers {
    pub fn with_capacity(capacity: usize) -> Self {
        Self { members: Map::with_capacity(capacity), numbers: HashMap::new() }
    }

    /// A duplicate key gets a number: `***`, `*** (2)`, `*** (3)`.
    pub fn insert(&mut self, key: String, value: Value) {
        let key = if self.members.contains_key(&key) { self.numbered(key) } else { key };
        self.members.insert(key, value);
    }

    fn numbered(&mut self, key: String) -> String {
        let mut number = self.numbers.get(&key).copied().unwrap_or(1);
        let free = loop {
            number += 1;
            let free = format!("{key} ({number})");
            if !self.members.contains_key(&free) {
                break free;
            }
        };
        self.numbers.insert(key, number);
        free
    }

    pub fn into_members(self) -> Map<String, Value> {
        self.members
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(keys: &[&str], expect: &[&str]) {
        let mut members = DistinctMembers::default();
        for key in keys {
            members.insert((*key).to_owned(), json!(1));
        }
        let kept = members.into_members();
        assert_eq!(kept.keys().collect::<Vec<_>>(), expect);
    }

    #[test]
    fn duplicate_key_gets_a_number() {
        check(&["a", "b"], &["a", "b"]);
        check(&["a", "a", "b", "a"], &["a", "a (2)", "b", "a (3)"]);
    }

    #[test]
    fn existing_numbered_key_is_not_reused() {
        check(&["a (2)", "a", "a", "a"], &["a (2)", "a", "a (3)", "a (4)"]);
        check(&["a", "a", "a (2)"], &["a", "a (2)", "a (2) (2)"]);
    }

    /// Quadratic time would take hours.
    #[test]
    fn very_many_equal_keys_are_kept() {
        let mut members = DistinctMembers::default();
        (0..50_000).for_each(|number| members.insert("***".to_owned(), json!(number)));
        let kept = members.into_members();
        assert_eq!((kept.len(), &kept["*** (50000)"]), (50_000, &json!(49_999)));
    }
}
