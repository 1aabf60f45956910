//! Bounds the size of a record. Long texts are shortened. If the record is still too large, the parts that callers and
//! tools control are dropped, and finally everything but the end. An opened call always gets a closing record.

use serde_json::{Map, Value, json};

use super::CallRecord;

impl CallRecord {
    /// Shortens long texts in lists that callers and tools fill. Runs after the search for secrets, because a cut
    /// secret would not be found.
    pub(super) fn shorten_texts(&mut self) {
        for touch in self.touches.iter_mut().filter_map(Value::as_object_mut) {
            cut_members(touch);
        }
        let fields = self.response.as_mut().map(|response| &mut response.redacted_fields);
        fields.and_then(Value::as_array_mut).into_iter().flatten().for_each(cut_name);
        let Some(run) = &mut self.run else { return };
        let lists = [Some(&mut run.effects), run.refused.as_mut()].into_iter().flatten();
        for item in lists.filter_map(Value::as_array_mut).flatten() {
            match item {
                Value::String(text) => {
                    cut(text, LONGEST_ITEM);
                }
                Value::Object(members) => cut_members(members),
                _ => {}
            }
        }
    }

    /// Drops the parts that callers and tools can make large. Returns whether there were any.
    pub(super) fn drop_large_parts(&mut self) -> bool {
        let mut any = self.request.args.take().is_some() | self.request.coercions.take().is_some();
        if let Some(response) = &mut self.response {
            any |= empty(&mut response.redacted_fields) | response.output.take().is_some();
        }
        if let Some(run) = &mut self.run {
            any |= empty(&mut run.effects) | run.refused.as_mut().is_some_and(empty);
        }
        any |= !std::mem::take(&mut self.touches).is_empty();
        any |= self.message.as_mut().is_some_and(|message| cut(message, LONGEST_TEXT));
        for decision in &mut self.decisions {
            any |= cut(&mut decision.why, LONGEST_TEXT);
        }
        // Alerts matter most, so some of them stay.
        for list in [&mut self.alerts, &mut self.dangers] {
            any |= list.len() > MOST_NAMED;
            list.truncate(MOST_NAMED);
            for text in list {
                any |= cut(text, LONGEST_TEXT);
            }
        }
        any
    }

    /// Keeps only the end: the call, its caller, its last stage and its outcome. Caller and client stay complete,
    /// because the opening record was written with them.
    pub(super) fn keep_only_end(&mut self) {
        let name = self.tool.get("name").and_then(Value::as_str).unwrap_or_default();
        let mut name = name.to_owned();
        cut(&mut name, LONGEST_ITEM);
        self.tool = json!({ "name": name }).into();
        (self.request.args, self.request.coercions, self.request.coercion_count) = (None, None, None);
        let said = self.message.take().map(|mut message| {
            cut(&mut message, LONGEST_ITEM);
            format!("{message}; ")
        });
        self.message = Some(format!("{}{LEFT_OUT}", said.unwrap_or_default()));
        (self.run, self.response, self.tool_safety, self.labels) = (None, None, None, None);
        (self.alerts, self.dangers) = (Vec::new(), Vec::new());
        (self.decisions, self.touches) = (Vec::new(), Vec::new());
    }
}

fn empty(list: &mut Value) -> bool {
    list.as_array_mut().is_some_and(|list| !std::mem::take(list).is_empty())
}

fn cut_members(members: &mut Map<String, Value>) {
    for text in members.values_mut() {
        if let Value::String(text) = text {
            cut(text, LONGEST_ITEM);
        }
    }
}

/// Shortens a name that a caller or a tool chose, after it was searched for secrets.
pub(super) fn cut_name(name: &mut Value) {
    if let Value::String(name) = name {
        cut_name_text(name);
    }
}

/// Like `cut_name`.
pub(super) fn cut_name_text(name: &mut String) {
    cut(name, LONGEST_NAME);
}

/// Marks the cut with `…`. Returns whether anything was cut.
fn cut(text: &mut String, longest: usize) -> bool {
    // Most texts are short, so compare bytes before counting characters.
    let end = if text.len() > longest { text.char_indices().nth(longest).map(|(end, _)| end) } else { None };
    if let Some(end) = end {
        text.truncate(end);
        text.push('…');
    }
    end.is_some()
}

const LEFT_OUT: &str = "the rest of this record was too large to write";
/// Characters of a path, an address or a denial.
const LONGEST_ITEM: usize = 300;
const LONGEST_NAME: usize = 199;
const LONGEST_TEXT: usize = 1_000;
const MOST_NAMED: usize = 20;
