//! Applies the output policy to a result. With a policy, fields without a matching rule are redacted.

mod automaton;

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState},
};

use serde_json::Value;
use toolgate_spec::model::{Governance, OutputAction, OutputRule};

use self::automaton::OutputAutomaton;

/// The field rules of one tool.
#[derive(Clone, Copy, Debug)]
pub struct OutputPolicy<'s> {
    rules: Option<&'s [OutputRule]>,
}

impl<'s> OutputPolicy<'s> {
    pub fn of(governance: &'s Governance) -> Self {
        Self { rules: governance.output_policy.as_deref() }
    }

    /// True if the tool has an output policy.
    pub const fn exists(&self) -> bool {
        self.rules.is_some()
    }

    /// Returns the allowed part of a result, and the paths of masked or redacted fields. The most specific rule decides; among
    /// equals the stricter one. An object or list under `mask` is redacted as a whole, because its structure would reveal more
    /// than two characters.
    pub fn apply(&self, mut value: Value) -> (Value, Vec<String>) {
        let Some(rules) = self.rules else { return (value, Vec::new()) };
        let mut walk = OutputWalk {
            rules: OutputAutomaton::new(rules),
            told: HashSet::new(),
            hashing: RandomState::new(),
            redacted: Vec::new(),
        };
        // The top level always remains: as an empty object or list, or as null.
        let leaves = walk.leaves(&mut value, &FieldPosition::TOP, Within::Field);
        if !leaves && !value.is_object() && !value.is_array() {
            value = Value::Null;
        }
        (value, walk.redacted)
    }
}

/// One pass over a value.
struct OutputWalk<'r> {
    rules: OutputAutomaton<'r>,
    /// Hashes of the reported paths. A hash collision only omits a path from the report.
    told: HashSet<u64>,
    hashing: RandomState,
    redacted: Vec<String>,
}

/// Whether a value is a field itself or an item of its list.
#[derive(Clone, Copy)]
enum Within {
    Field,
    List,
}

/// The current position: the state of the automaton and the field names above, innermost first.
struct FieldPosition<'p> {
    state: usize,
    name: &'p str,
    above: Option<&'p FieldPosition<'p>>,
}

impl FieldPosition<'_> {
    const TOP: Self = Self { state: OutputAutomaton::TOP, name: "", above: None };

    /// The names from the top, without indices.
    fn path(&self) -> Vec<&str> {
        let mut path: Vec<&str> = self.names().collect();
        path.reverse();
        path
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let upwards = std::iter::successors(Some(self), |place| place.above);
        upwards.filter(|place| place.above.is_some()).map(|place| place.name)
    }
}

impl OutputWalk<'_> {
    /// Removes the fields that may not leave; returns whether the value may. An empty container reveals that it existed.
    /// It therefore leaves only if a rule allows the field itself, or if it is a list on the path of an allowing rule: an
    /// empty search result is a result too.
    fn leaves(&mut self, value: &mut Value, place: &FieldPosition<'_>, within: Within) -> bool {
        let is_empty = match value {
            Value::Object(members) => {
                members.retain(|name, value| {
                    let state = self.rules.below(place.state, name);
                    let below = FieldPosition { state, name, above: Some(place) };
                    let leaves = self.leaves(value, &below, Within::Field);
                    self.rules.leave(state);
                    leaves
                });
                members.is_empty()
            }
            Value::Array(items) => {
                items.retain_mut(|item| self.leaves(item, place, Within::List));
                items.is_empty() && !(matches!(within, Within::Field) && self.rules.leads_on(place.state))
            }
            scalar => return self.scalar_leaves(scalar, place, within),
        };
        !is_empty || self.rules.action(place.state) == OutputAction::Allow
    }

    fn scalar_leaves(&mut self, scalar: &mut Value, place: &FieldPosition<'_>, within: Within) -> bool {
        let action = match (self.rules.action(place.state), within) {
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

    /// Reports each path once, regardless of list items, up to a limit.
    fn tell(&mut self, place: &FieldPosition<'_>) {
        if self.redacted.len() >= MOST_REDACTED || !self.told.insert(self.hash_of(place)) {
            return;
        }
        let path = match place.path().as_slice() {
            [] => ".".to_owned(),
            names => names.iter().fold(String::new(), |text, name| format!("{text}.{name}")),
        };
        self.redacted.push(path.chars().take(LONGEST_PATH).collect());
    }

    fn hash_of(&self, place: &FieldPosition<'_>) -> u64 {
        let mut hasher = self.hashing.build_hasher();
        place.names().for_each(|name| name.hash(&mut hasher));
        hasher.finish()
    }
}

/// The first and last character of a long enough text. For other values two characters would reveal too much.
fn masked(value: &Value) -> String {
    let Some(text) = value.as_str() else { return "***".to_owned() };
    let mut characters = text.chars();
    match (characters.next(), characters.next_back()) {
        (Some(first), Some(last)) if characters.nth(1).is_some() => format!("{first}***{last}"),
        _ => "***".to_owned(),
    }
}

const MOST_REDACTED: usize = 200;
/// Longer than any output shows. The secret detector therefore sees every secret that starts in the shown part whole.
const LONGEST_PATH: usize = 4_096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use toolgate_spec::{FieldPattern, FieldStep};

    use super::{automaton::effective, *};

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
        let rules = OutputPolicy::of(&governance).rules;
        let states = rules.map(|rules| {
            let mut states = OutputAutomaton::new(rules);
            let state = path.iter().fold(OutputAutomaton::TOP, |state, name| states.below(state, name));
            states.action(state)
        });
        assert_eq!(states.unwrap_or(OutputAction::Allow), expect, "{path:?}");
        assert_eq!(rules.map_or(OutputAction::Allow, |rules| as_documented(rules, path)), expect, "{path:?}");
    }

    /// Evaluates the rules one by one for a whole path.
    fn as_documented(rules: &[OutputRule], path: &[&str]) -> OutputAction {
        rules
            .iter()
            .filter_map(|rule| Some((rule.pattern.specificity_at(path)?, effective(rule, path))))
            .max()
            .map_or(OutputAction::Redact, |(_, action)| action)
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
    fn mask_keeps_two_characters_of_a_text_only() {
        let result = json!({ "long": "secret", "four": "abcd", "three": "abc", "none": "", "wide": "äbcdö",
            "number": 12345, "truth": true, "null": null });
        let expect = json!({ "long": "s***t", "four": "a***d", "three": "***", "none": "***", "wide": "ä***ö",
            "number": "***", "truth": "***", "null": "***" });
        let told = [".long", ".four", ".three", ".none", ".wide", ".number", ".truth", ".null"];
        check_result(&[("*", OutputAction::Mask)], result, &expect, &told);
    }

    /// Field names, their number and two characters of each would reveal what `mask` hides.
    #[test]
    fn masked_object_or_list_is_redacted_as_a_whole() {
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
        // A field below may have its own rule.
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

    /// A search without matches has a result, and its schema requires the list.
    #[test]
    fn list_on_the_path_of_an_allowing_rule_stays_empty() {
        use OutputAction::{Allow, Mask, Redact};
        let rules = [(".items[].name", Allow), (".rows[].status.parts[].mail", Mask), ("*", Redact)];
        let empty = json!({ "items": [] });
        check_result(&rules, empty.clone(), &empty, &[]);
        // The number of redacted items is not revealed.
        check_result(&rules, json!({ "items": [{ "ssn": 1 }] }), &empty, &[".items.ssn"]);
        let parts = json!({ "rows": [{ "status": { "parts": [] } }] });
        check_result(&rules, parts.clone(), &parts, &[]);
        // Other empty containers are removed: without a rule on their path, not a list, or redacted.
        let others = json!({ "other": [], "rows": [{ "status": {}, "parts": [] }], "items": {} });
        check_result(&rules, others, &json!({ "rows": [] }), &[]);
        check_result(
            &[("..name", Allow), (".a.*.name", Allow)],
            json!({ "b": [], "a": { "c": [] } }),
            &json!({}),
            &[],
        );
        check_result(&[(".a[].b", Allow), (".a", Redact)], json!({ "a": [] }), &json!({}), &[]);
        check_result(&[(".a[].b", Redact)], json!({ "a": [] }), &json!({}), &[]);
        check_result(&[(".a[]..b", Allow)], json!({ "a": { "c": [] } }), &json!({}), &[]);
        check_result(&[(".a[]..b", Allow)], json!({ "a": [] }), &json!({}), &[]);
        check_result(&[(".a[].b", Allow)], json!({ "a": [[], []] }), &json!({ "a": [] }), &[]);
    }

    #[test]
    fn missing_policy_allows_and_empty_policy_redacts() {
        check(None, &["a"], OutputAction::Allow);
        check(Some(&[]), &["a"], OutputAction::Redact);
    }

    #[test]
    fn most_specific_rule_decides_and_ties_are_strict() {
        use OutputAction::{Allow, Mask, Redact};
        let rules = [(".customer", Allow), ("..ssn", Redact), (".customer.email", Mask), ("*", Redact)];
        check(Some(&rules), &["customer", "name"], Allow);
        check(Some(&rules), &["customer", "email"], Mask);
        check(Some(&rules), &["other"], Redact);
        check(Some(&[(".a", Allow), ("a", Mask)]), &["a"], Mask);
        check(Some(&[("a", Mask), (".a", Allow)]), &["a"], Mask);
        check(Some(&[(".a.b", Allow)]), &["a", "c"], Redact);
    }

    /// Patterns with few names, so they overlap; including unusual ones.
    fn patterns() -> impl Strategy<Value = String> {
        let step = prop_oneof![4 => "[abc]", 2 => Just("*".to_owned()), 1 => "[ab]\\[\\]", 1 => Just("[]".to_owned())];
        let first = prop_oneof![Just("."), Just(".."), Just("*."), Just("")];
        let steps = proptest::collection::vec((prop_oneof![3 => Just("."), 1 => Just("..")], step), 1..5);
        let way = (first, steps).prop_map(|(first, steps)| {
            let way: String =
                steps.into_iter().flat_map(|(between, step)| [between.to_owned(), step]).collect();
            format!("{first}{}", way.trim_start_matches('.'))
        });
        prop_oneof![1 => Just("*".to_owned()), 1 => Just(".".to_owned()), 1 => Just("[]".to_owned()), 12 => way]
    }

    fn rules() -> impl Strategy<Value = Vec<OutputRule>> {
        let rule = (patterns(), proptest::sample::select(OutputAction::ALL.to_vec()));
        let rule = rule.prop_filter_map("no pattern", |(pattern, action)| {
            Some(OutputRule { pattern: FieldPattern::parse(&pattern).ok()?, action })
        });
        proptest::collection::vec(rule, 0..8)
    }

    fn results() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![Just(json!("a secret")), Just(json!(7)), Just(Value::Null)];
        scalar.prop_recursive(5, 60, 4, |inner| {
            let members = proptest::collection::btree_map("[abcd]", inner.clone(), 0..4);
            prop_oneof![
                3 => members.prop_map(|members| Value::Object(members.into_iter().collect())),
                1 => proptest::collection::vec(inner, 0..3).prop_map(Value::Array),
            ]
        })
    }

    fn is_on_the_way(rules: &[OutputRule], path: &[&str]) -> bool {
        let leads_through = |rule: &OutputRule| {
            let steps: Vec<FieldStep<'_>> = rule.pattern.steps().collect();
            let names = steps.iter().zip(path).filter(|(step, name)| **step == FieldStep::Name(name));
            let is_named = names.count() == path.len();
            let next = steps.get(path.len());
            !rule.pattern.is_catch_all() && is_named && next.is_some_and(|next| *next != FieldStep::AnyDepth)
        };
        let is_spoken_of =
            |rule: &OutputRule| !rule.pattern.is_catch_all() && rule.pattern.specificity_at(path).is_some();
        !rules.iter().any(is_spoken_of)
            && rules.iter().any(|rule| rule.action != OutputAction::Redact && leads_through(rule))
    }

    /// The same walk, evaluating all rules for each path.
    fn applied_one_by_one(rules: &[OutputRule], value: Value) -> (Value, Vec<String>) {
        fn leaves(
            rules: &[OutputRule],
            value: &mut Value,
            (path, within): (&[&str], Within),
            told: &mut Vec<String>,
        ) -> bool {
            let action = as_documented(rules, path);
            match value {
                Value::Object(members) => {
                    members.retain(|name, value| {
                        let below: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
                        leaves(rules, value, (&below, Within::Field), told)
                    });
                    !members.is_empty() || action == OutputAction::Allow
                }
                Value::Array(items) => {
                    items.retain_mut(|item| leaves(rules, item, (path, Within::List), told));
                    !items.is_empty()
                        || action == OutputAction::Allow
                        || (matches!(within, Within::Field) && is_on_the_way(rules, path))
                }
                scalar => {
                    let is_masked = action == OutputAction::Mask && matches!(within, Within::Field);
                    let text = format!(".{}", path.join("."));
                    if action != OutputAction::Allow && !told.contains(&text) {
                        told.push(text);
                    }
                    if is_masked {
                        *scalar = Value::String(masked(scalar));
                    }
                    is_masked || action == OutputAction::Allow
                }
            }
        }
        let (mut value, mut told) = (value, Vec::new());
        let kept = leaves(rules, &mut value, (&[], Within::Field), &mut told);
        let is_gone = !kept && !value.is_object() && !value.is_array();
        (if is_gone { Value::Null } else { value }, told)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn automaton_equals_rule_by_rule_evaluation(rules in rules(), result in results()) {
            let expect = applied_one_by_one(&rules, result.clone());
            let governance = Governance { output_policy: Some(rules), ..Governance::default() };
            prop_assert_eq!(OutputPolicy::of(&governance).apply(result), expect);
        }
    }

    /// Each `*` doubles the number of states. States beyond the limit are computed each time, with the same result.
    #[test]
    fn rules_with_very_many_states_are_applied() {
        let deep = |bits: u32| {
            (0..16).rev().fold(
                json!({ "end": "x" }),
                |below, bit| json!({ if (bits >> bit) & 1 == 1 { "a" } else { "b" }: below }),
            )
        };
        let pattern = FieldPattern::parse(&format!("..a{}.end", ".*".repeat(14))).unwrap();
        let rules = vec![OutputRule { pattern, action: OutputAction::Allow }];
        let result: serde_json::Map<String, Value> =
            (0..1 << 11).map(|bits| (bits.to_string(), deep(bits * 31))).collect();
        let expect = applied_one_by_one(&rules, Value::Object(result.clone())).0;
        let governance = Governance { output_policy: Some(rules), ..Governance::default() };
        assert_eq!(OutputPolicy::of(&governance).apply(Value::Object(result)).0, expect);
    }
}
