//! What of a call is personal? What stands in a field that the tool calls so, there and where the tool repeats it.
//!
//! A caller chooses what stands in such a field. So it is looked for in the tool's own words only: were it kept out of
//! targets, refusals and reasons too, a caller would choose what nobody finds in the journal.

use std::{borrow::Cow, fmt, iter};

use serde_json::{Map, Value};
use toolgate_policy::Mask;
use toolgate_spec::FieldPattern;

use crate::reason::Reason;

/// What the personal fields of a call hold.
///
/// A caller chooses how much that is. It must neither leave the tool unheard, as it would where everything was hidden then,
/// nor let through what stands behind it. So what is beyond `MOST_BYTES` is looked for all the same, but as it stands.
#[derive(Clone, Default)]
pub struct Held {
    /// Looked for in every disguise.
    texts: Vec<String>,
    bytes: usize,
    /// What is beyond that, each ended by `END`.
    rest: String,
}

impl Held {
    pub fn in_arguments(fields: &[FieldPattern], members: &Map<String, Value>) -> Self {
        let mut held = Self::default();
        held.collect_members(fields, members, &mut Vec::new());
        held
    }

    /// With what those of the result hold.
    pub fn and_in_result(&self, fields: &[FieldPattern], value: &Value) -> Self {
        let mut held = self.clone();
        held.collect(fields, value, &mut Vec::new());
        held
    }

    /// Finds it as secrets are found: by its bytes, from four characters on. Costly, and so made where there is a text to
    /// look through: once in a call.
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
        // Many a tool takes blanks away before it says anything.
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

impl fmt::Debug for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Held(***)")
    }
}

/// The real name of a path, and the host of an address, hold only parts of what was passed.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let is_place = rest.len() < text.len() || rest.contains('/');
    rest.split(['/', '?', '#', '@', ':']).filter(move |_| is_place)
}

/// What is told of an argument that was read as something else, `name: from → to`. Of a personal one that is its name.
pub fn coercion<'t>(fields: &[FieldPattern], told: &'t str) -> Cow<'t, str> {
    match told.rsplit_once(": ") {
        Some((name, _)) if is_personal(fields, &[name.to_owned()]) => Cow::Owned(format!("{name}: ***")),
        _ => Cow::Borrowed(told),
    }
}

/// Where a call ends so, does the message hold what the tool says? Every other one is the gateway's word.
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

/// May it at least repeat what the tool chose, such as the name of a path that the jail refused?
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

/// In bytes. What has fewer has fewer than four characters, and would blank out half of every text.
const SHORTEST: usize = 4;
/// Of the values as they stand; with their parts and disguises there is forty times as much to look for.
const MOST_BYTES: usize = 1_024;
/// A text that holds one counts as two.
const END: char = '\0';

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(patterns: &[&str]) -> Vec<FieldPattern> {
        patterns.iter().map(|pattern| FieldPattern::parse(pattern).unwrap()).collect()
    }

    fn held(patterns: &[&str], value: &Value) -> Held {
        Held::in_arguments(&fields(patterns), value.as_object().unwrap())
    }

    #[track_caller]
    fn check(patterns: &[&str], value: &Value, text: &str, expect: &str) {
        assert_eq!(held(patterns, value).mask().text(text), expect, "{patterns:?} {value}");
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
    fn what_the_result_holds_is_found_too() {
        let (mail, bob) = (fields(&["..mail"]), json!([{ "mail": "bob@example.org" }]));
        let both = held(&["..mail"], &json!({ "mail": "ann@example.org" })).and_in_result(&mail, &bob);
        assert_eq!(both.mask().text("ann@example.org, bob@example.org"), "***, ***");
    }

    #[test]
    fn parts_of_paths_and_addresses_are_found() {
        let path = json!({ "path": "notes/../ann-smith.txt", "url": "https://ann.example:8080/a?b" });
        check(&[".path"], &path, "/srv/ann-smith.txt is outside", "/srv/*** is outside");
        check(&[".url"], &path, "ann.example is unknown", "*** is unknown");
    }

    /// Whoever pads a personal field hides nothing that the tool says.
    #[test]
    fn much_in_a_personal_field_hides_no_other_words() {
        let padding = "and so on, ".repeat(500);
        for much in [json!("x".repeat(MOST_BYTES + 1)), json!(padding), json!(vec!["abcd"; 10_000])] {
            check(&["a"], &json!({ "a": much }), "I deleted the ledger", "I deleted the ledger");
        }
    }

    /// Nor does padding let through what it stands beside.
    #[test]
    fn what_is_padded_is_found_all_the_same() {
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
    fn each_of_many_values_is_found() {
        let mails: Vec<String> = (0..1_000).map(|number| format!("ann{number}@example.org")).collect();
        let value = json!({ "a": mails });
        check(&["a"], &value, "from ann7@example.org to ann999@example.org", "from *** to ***");
        check(&["a"], &value, "from bob@example.com", "from bob@example.com");
    }

    /// A caller chooses how much that is.
    #[test]
    fn what_is_kept_grows_with_the_values_and_not_faster() {
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
    fn of_a_personal_argument_only_the_name_is_told() {
        let personal = fields(&[".phone", "..mail"]);
        assert_eq!(coercion(&personal, "phone: text → integer"), "phone: ***");
        assert_eq!(coercion(&personal, "mail: blank → absent"), "mail: ***");
        assert_eq!(coercion(&personal, "count: text → integer"), "count: text → integer");
        assert_eq!(coercion(&personal, "phone: x: null → absent"), "phone: x: null → absent");
    }
}
