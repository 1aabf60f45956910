//! Finds personal data: the values of the fields that the tool declares as personal, and their copies in the tool's
//! output.
//!
//! A caller chooses these values. They are therefore masked only in what the tool says. If they were also masked in
//! targets, refusals and reasons, a caller could hide those from the journal.

use std::{borrow::Cow, fmt, iter};

use serde_json::{Map, Value};
use toolgate_policy::Mask;
use toolgate_spec::FieldPattern;

use crate::reason::Reason;

/// The values of a call's personal fields.
///
/// A caller chooses how many there are. A large amount must neither hide the tool's whole output nor leave the values
/// unmasked. Values beyond `MOST_BYTES` are therefore searched in their exact form only.
#[derive(Clone, Default)]
pub struct PersonalData {
    /// Searched in every encoding.
    texts: Vec<String>,
    bytes: usize,
    /// The values beyond the limit, each followed by `END`.
    rest: String,
}

impl PersonalData {
    pub fn in_arguments(fields: &[FieldPattern], members: &Map<String, Value>) -> Self {
        let mut held = Self::default();
        held.collect_members(fields, members, &mut Vec::new());
        held
    }

    /// Adds the values of the personal fields of the result.
    pub fn and_in_result(&self, fields: &[FieldPattern], value: &Value) -> Self {
        let mut held = self.clone();
        held.collect(fields, value, &mut Vec::new());
        held
    }

    /// A mask that finds the values like secrets: by their bytes, from four characters on. It is costly, so it is built
    /// once per call, when there is a text to search.
    pub fn mask(&self) -> Mask {
        let mask = Mask::new(&self.texts);
        if self.rest.is_empty() {
            return mask;
        }
        let rest = self.rest.split(END);
        mask.and_as_they_stand(rest.flat_map(|text| iter::once(text).chain(pieces(text))))
    }

    fn collect(&mut self, fields: &[FieldPattern], value: &Value, path: &mut Vec<String>) {
        match value {
            _ if is_personal(fields, path) => self.take(value),
            Value::Array(items) => items.iter().for_each(|item| self.collect(fields, item, path)),
            Value::Object(members) => self.collect_members(fields, members, path),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn collect_members(
        &mut self,
        fields: &[FieldPattern],
        members: &Map<String, Value>,
        path: &mut Vec<String>,
    ) {
        for (key, value) in members {
            path.push(key.clone());
            self.collect(fields, value, path);
            path.pop();
        }
    }

    fn take(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text),
            Value::Number(number) => self.add(&number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.take(item)),
            Value::Object(members) => {
                for (key, value) in members {
                    self.add(key);
                    self.take(value);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn add(&mut self, text: &str) {
        if text.len() < SHORTEST {
            return;
        }
        // Many tools trim a value before they print it.
        let bare = text.trim();
        if bare.len() < text.len() {
            self.add(bare);
        }
        if self.bytes + text.len() > MOST_BYTES {
            self.rest.push_str(text);
            self.rest.push(END);
            return;
        }
        self.bytes += text.len();
        self.texts.push(text.to_owned());
        self.texts.extend(pieces(text).filter(|piece| piece.len() >= SHORTEST).map(str::to_owned));
    }
}

impl fmt::Debug for PersonalData {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PersonalData(***)")
    }
}

/// The real name of a path and the host of a URL contain only parts of the argument.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let is_place = rest.len() < text.len() || rest.contains('/');
    rest.split(['/', '?', '#', '@', ':']).filter(move |_| is_place)
}

/// The journal text of a coerced argument, `name: from → to`. For a personal argument only the name is shown.
pub fn coercion<'t>(fields: &[FieldPattern], told: &'t str) -> Cow<'t, str> {
    match told.rsplit_once(": ") {
        Some((name, _)) if is_personal(fields, &[name.to_owned()]) => Cow::Owned(format!("{name}: ***")),
        _ => Cow::Borrowed(told),
    }
}

/// Whether the message of a call that ends with this reason is the tool's text. All other messages are the gateway's.
pub const fn is_said_by_tool(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::ToolFailed
            | Reason::CodeInvalid
            | Reason::NotData
            | Reason::CommandFailed
            | Reason::OutputUnreadable
    )
}

/// Whether the message may repeat a text that the tool chose, such as a path that the jail denied.
pub const fn can_repeat_tool(reason: Reason) -> bool {
    is_said_by_tool(reason)
        || matches!(
            reason,
            Reason::BlockedPathMade | Reason::Timeout | Reason::Memory | Reason::ResultTooLarge
        )
}

fn is_personal(fields: &[FieldPattern], path: &[String]) -> bool {
    fields.iter().any(|field| field.specificity_at(path).is_some())
}

/// In bytes. Shorter values would mask parts of ordinary words.
const SHORTEST: usize = 4;
/// Of the values in their exact form. All parts and encodings together are about forty times as much.
const MOST_BYTES: usize = 1_024;
/// Separates values. A text that contains it counts as two.
const END: char = '\0';

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(patterns: &[&str]) -> Vec<FieldPattern> {
        patterns.iter().map(|pattern| FieldPattern::parse(pattern).unwrap()).collect()
    }

    fn held(patterns: &[&str], value: &Value) -> PersonalData {
        PersonalData::in_arguments(&fields(patterns), value.as_object().unwrap())
    }

    #[track_caller]
    fn check(patterns: &[&str], value: &Value, text: &str, expect: &str) {
        assert_eq!(held(patterns, value).mask().text(text), expect, "{patterns:?} {value}");
    }

    #[test]
    fn personal_values_are_masked_in_other_texts() {
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
    fn personal_values_of_the_result_are_masked() {
        let (mail, bob) = (fields(&["..mail"]), json!([{ "mail": "bob@example.org" }]));
        let both = held(&["..mail"], &json!({ "mail": "ann@example.org" })).and_in_result(&mail, &bob);
        assert_eq!(both.mask().text("ann@example.org, bob@example.org"), "***, ***");
    }

    #[test]
    fn parts_of_paths_and_urls_are_masked() {
        let path = json!({ "path": "notes/../ann-smith.txt", "url": "https://ann.example:8080/a?b" });
        check(&[".path"], &path, "/srv/ann-smith.txt is outside", "/srv/*** is outside");
        check(&[".url"], &path, "ann.example is unknown", "*** is unknown");
    }

    /// Padding a personal field must not mask other words of the tool.
    #[test]
    fn large_personal_field_does_not_mask_other_words() {
        let padding = "and so on, ".repeat(500);
        for much in [json!("x".repeat(MOST_BYTES + 1)), json!(padding), json!(vec!["abcd"; 10_000])] {
            check(&["a"], &json!({ "a": much }), "I deleted the ledger", "I deleted the ledger");
        }
    }

    /// Padding must not expose the personal value beside it.
    #[test]
    fn padded_personal_value_is_masked() {
        let (mail, padding) = ("ann@example.org", "and so on, ".repeat(500));
        let blanks = " ".repeat(5_000);
        for padded in [format!("{mail}{blanks}"), format!("{blanks}{mail}"), format!("{padding}{mail}")] {
            let value = json!({ "a": padded });
            check(&["a"], &value, &format!("no mail for <{padded}>"), "no mail for <***>");
            check(&["a"], &value, &format!("no mail for <{mail}>"), "no mail for <***>");
        }
        check(&["a"], &json!({ "a": [padding, mail] }), "no mail for ann@example.org!", "no mail for ***!");
        let path = json!({ "a": format!("/{}/ann.txt", "long/".repeat(1_000)) });
        check(&["a"], &path, "/srv/ann.txt is outside", "/srv/*** is outside");
    }

    #[test]
    fn each_of_many_values_is_masked() {
        let mails: Vec<String> = (0..1_000).map(|number| format!("ann{number}@example.org")).collect();
        let value = json!({ "a": mails });
        check(&["a"], &value, "from ann7@example.org to ann999@example.org", "from *** to ***");
        check(&["a"], &value, "from bob@example.com", "from bob@example.com");
    }

    /// A caller chooses the amount of data.
    #[test]
    fn memory_grows_linearly_with_the_values() {
        for large in
            [json!("x".repeat(500_000)), json!("/abcd".repeat(100_000)), json!(vec!["abcd"; 100_000])]
        {
            let held = held(&["a"], &json!({ "a": large }));
            let texts: usize = held.texts.iter().map(String::len).sum();
            assert!(texts <= 2 * MOST_BYTES && held.rest.len() <= 500_001, "{texts} {}", held.rest.len());
        }
        let tiny = held(&["a"], &json!({ "a": vec!["a/b"; 100_000] }));
        assert!(tiny.texts.is_empty() && tiny.rest.is_empty());
    }

    #[test]
    fn coercion_of_a_personal_argument_shows_only_its_name() {
        let personal = fields(&[".phone", "..mail"]);
        assert_eq!(coercion(&personal, "phone: text → integer"), "phone: ***");
        assert_eq!(coercion(&personal, "mail: blank → absent"), "mail: ***");
        assert_eq!(coercion(&personal, "count: text → integer"), "count: text → integer");
        assert_eq!(coercion(&personal, "phone: x: null → absent"), "phone: x: null → absent");
    }
}
