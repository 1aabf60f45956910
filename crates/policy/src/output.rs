//! May this field of the output leave? Where a policy exists, what no rule names does not.

use std::collections::HashMap;

use serde_json::Value;
use toolgate_spec::model::{Governance, OutputAction, OutputRule};

/// The field rules of one tool.
#[derive(Clone, Copy, Debug)]
pub struct OutputPolicy<'s> {
    rules: Option<&'s [OutputRule]>,
}

impl<'s> OutputPolicy<'s> {
    pub fn of(governance: &'s Governance) -> Self {
        Self { rules: governance.output_policy.as_deref() }
    }

    /// Without a field policy there is nothing to walk the output for.
    pub const fn exists(&self) -> bool {
        self.rules.is_some()
    }

    /// What becomes of a leaf. The path lists field names from the top, without indices. The most specific rule
    /// decides; of two equally specific the stricter. Only a field that the rule names itself is masked: an object or a list
    /// under `mask` is redacted as a whole, for its form would tell more than two characters.
    pub fn action_for(&self, path: &[&str]) -> OutputAction {
        let Some(rules) = self.rules else { return OutputAction::Allow };
        rules
            .iter()
            .filter_map(|rule| Some((rule.pattern.specificity_at(path)?, effective(rule, path))))
            .max()
            .map_or(OutputAction::Redact, |(_, action)| action)
    }

    /// The part of a result that may leave, and the fields that were masked or taken out of it.
    pub fn apply(&self, mut value: Value) -> (Value, Vec<String>) {
        if !self.exists() {
            return (value, Vec::new());
        }
        let mut walk = Walk { policy: self, places: Vec::new(), path: Vec::new(), redacted: Vec::new() };
        let top = walk.place();
        // Of the whole there is always something left: an object or list without what it held, or nothing.
        if !walk.leaves(&mut value, top, Within::Field) && !value.is_object() && !value.is_array() {
            value = Value::Null;
        }
        (value, walk.redacted)
    }
}

/// One pass over a value. What the rules say of a path is worked out once, however many items of a list have it.
struct Walk<'w> {
    policy: &'w OutputPolicy<'w>,
    places: Vec<Place>,
    path: Vec<String>,
    redacted: Vec<String>,
}

/// Whether a value is a field's own, or one of a list that is.
#[derive(Clone, Copy)]
enum Within {
    Field,
    List,
}

struct Place {
    action: OutputAction,
    below: HashMap<String, usize>,
    is_told: bool,
}

impl Walk<'_> {
    /// The place of the path that the walk stands at.
    fn place(&mut self) -> usize {
        let names: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let action = self.policy.action_for(&names);
        self.places.push(Place { action, below: HashMap::new(), is_told: false });
        self.places.len() - 1
    }

    fn below(&mut self, place: usize, key: &str) -> usize {
        if let Some(known) = self.places.get(place).and_then(|place| place.below.get(key)) {
            return *known;
        }
        let new = self.place();
        if let Some(place) = self.places.get_mut(place) {
            place.below.insert(key.to_owned(), new);
        }
        new
    }

    fn action(&self, place: usize) -> OutputAction {
        self.places.get(place).map_or(OutputAction::Redact, |place| place.action)
    }

    /// Takes out of the value what does not leave. A container leaves with those of its fields that do; an empty one tells
    /// that there was one, so that it leaves only where a rule lets the field itself leave.
    fn leaves(&mut self, value: &mut Value, place: usize, within: Within) -> bool {
        let is_empty = match value {
            Value::Object(members) => {
                members.retain(|key, value| {
                    self.path.push(key.clone());
                    let below = self.below(place, key);
                    let leaves = self.leaves(value, below, Within::Field);
                    self.path.pop();
                    leaves
                });
                members.is_empty()
            }
            Value::Array(items) => {
                items.retain_mut(|item| self.leaves(item, place, Within::List));
                items.is_empty()
            }
            scalar => return self.scalar_leaves(scalar, place, within),
        };
        !is_empty || self.action(place) == OutputAction::Allow
    }

    fn scalar_leaves(&mut self, scalar: &mut Value, place: usize, within: Within) -> bool {
        let action = match (self.action(place), within) {
            (OutputAction::Mask, Within::List) => OutputAction::Redact,
            (action, _) => action,
        };
        if action != OutputAction::Allow {
            self.tell(place);
        }
        if action == OutputAction::Mask {
            *scalar = Value::String(masked(scalar));
        }
        action != OutputAction::Redact
    }

    /// Each path once, however many items of a list it stands for, and not endlessly many.
    fn tell(&mut self, place: usize) {
        let Some(place) = self.places.get_mut(place).filter(|place| !place.is_told) else { return };
        place.is_told = true;
        if self.redacted.len() < MOST_REDACTED {
            let path = match self.path.as_slice() {
                [] => ".".to_owned(),
                parts => parts.iter().fold(String::new(), |text, part| format!("{text}.{part}")),
            };
            self.redacted.push(path.chars().take(LONGEST_PATH).collect());
        }
    }
}

/// What the rule does to this very field.
fn effective(rule: &OutputRule, path: &[&str]) -> OutputAction {
    match rule.action {
        OutputAction::Mask if !rule.pattern.names(path) => OutputAction::Redact,
        action => action,
    }
}

/// First and last character of a text, where there is enough between them to hide. Of `true` they would tell all.
fn masked(value: &Value) -> String {
    let Some(text) = value.as_str() else { return "***".to_owned() };
    let mut characters = text.chars();
    match (characters.next(), characters.next_back()) {
        (Some(first), Some(last)) if characters.nth(1).is_some() => format!("{first}***{last}"),
        _ => "***".to_owned(),
    }
}

const MOST_REDACTED: usize = 200;
const LONGEST_PATH: usize = 200;

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_spec::FieldPattern;

    use super::*;

    #[track_caller]
    fn check(rules: Option<&[(&str, OutputAction)]>, path: &[&str], expect: OutputAction) {
        let rule = |(pattern, action): &(&str, OutputAction)| OutputRule {
            pattern: FieldPattern::parse(pattern).unwrap(),
            action: *action,
        };
        let governance = Governance {
            output_policy: rules.map(|rules| rules.iter().map(rule).collect()),
            ..Governance::default()
        };
        assert_eq!(OutputPolicy::of(&governance).action_for(path), expect, "{path:?}");
    }

    #[track_caller]
    fn check_result(rules: &[(&str, OutputAction)], result: Value, expect: &Value, redacted: &[&str]) {
        let rule = |(pattern, action): &(&str, OutputAction)| OutputRule {
            pattern: FieldPattern::parse(pattern).unwrap(),
            action: *action,
        };
        let governance =
            Governance { output_policy: Some(rules.iter().map(rule).collect()), ..Governance::default() };
        let (left, told) = OutputPolicy::of(&governance).apply(result);
        assert_eq!(&left, expect);
        assert_eq!(told, redacted);
    }

    #[test]
    fn a_mask_leaves_two_characters_of_a_text_and_nothing_else() {
        let result = json!({ "long": "secret", "four": "abcd", "three": "abc", "none": "", "wide": "äbcdö",
            "number": 12345, "truth": true, "null": null });
        let expect = json!({ "long": "s***t", "four": "a***d", "three": "***", "none": "***", "wide": "ä***ö",
            "number": "***", "truth": "***", "null": "***" });
        let told = [".long", ".four", ".three", ".none", ".wide", ".number", ".truth", ".null"];
        check_result(&[("*", OutputAction::Mask)], result, &expect, &told);
    }

    /// The names of its fields, how many there are and two characters of each would tell what `mask` is there to hide.
    #[test]
    fn a_masked_object_or_list_is_redacted_as_a_whole() {
        use OutputAction::{Allow, Mask};
        let customer = json!({ "customer": { "name": "Adalbert", "card": { "number": "4111111111" } } });
        check_result(
            &[(".customer", Mask)],
            customer.clone(),
            &json!({}),
            &[".customer.name", ".customer.card.number"],
        );
        check_result(
            &[("*", Mask)],
            customer.clone(),
            &json!({}),
            &[".customer.name", ".customer.card.number"],
        );
        // What stands below may have a rule of its own.
        check_result(
            &[(".customer", Mask), (".customer.name", Mask)],
            customer.clone(),
            &json!({ "customer": { "name": "A***t" } }),
            &[".customer.name", ".customer.card.number"],
        );
        check_result(
            &[(".customer", Mask), ("..number", Allow)],
            customer,
            &json!({ "customer": { "card": { "number": "4111111111" } } }),
            &[".customer.name"],
        );
        let lists =
            json!({ "tags": ["first", "second"], "rows": [{ "mail": "ada@host" }, { "mail": ["bo@host"] }] });
        check_result(
            &[(".tags", Mask), (".rows[].mail", Mask)],
            lists.clone(),
            &json!({ "rows": [{ "mail": "a***t" }] }),
            &[".tags", ".rows.mail"],
        );
        check_result(
            &[(".tags[]", Mask), ("*", OutputAction::Redact)],
            lists,
            &json!({}),
            &[".tags", ".rows.mail"],
        );
        check_result(&[(".", Mask)], json!(["first", "second"]), &json!([]), &["."]);
        check_result(&[(".", Mask)], json!("secret"), &json!("s***t"), &["."]);
    }

    #[test]
    fn no_policy_allows_and_an_empty_one_redacts() {
        check(None, &["a"], OutputAction::Allow);
        check(Some(&[]), &["a"], OutputAction::Redact);
    }

    #[test]
    fn the_most_specific_rule_decides_and_ties_are_strict() {
        use OutputAction::{Allow, Mask, Redact};
        let rules = [(".customer", Allow), ("..ssn", Redact), (".customer.email", Mask), ("*", Redact)];
        check(Some(&rules), &["customer", "name"], Allow);
        check(Some(&rules), &["customer", "email"], Mask);
        check(Some(&rules), &["other"], Redact);
        check(Some(&[(".a", Allow), ("a", Mask)]), &["a"], Mask);
        check(Some(&[("a", Mask), (".a", Allow)]), &["a"], Mask);
        check(Some(&[(".a.b", Allow)]), &["a", "c"], Redact);
    }
}
