//! Edits JSON: replaces the spans of values, and formats new members like the existing ones.

use serde::Serialize;
use serde_json::{Map, Value, ser::PrettyFormatter};

use super::{DAMAGED, EditError, FieldChange};
use crate::read::{self, JsonMember};

pub(super) fn edit(
    text: &str,
    before: &Map<String, Value>,
    changes: &[FieldChange<'_>],
) -> Result<String, EditError> {
    let mut edited = text.to_owned();
    for (key, value) in changes {
        // Scans again for every change, because positions move. There are few changes.
        let members = read::json_members(&edited).ok_or(DAMAGED)?;
        let at = members.iter().position(|member| member.name == *key);
        match (at, value) {
            (Some(at), Some(value)) => {
                let is_same = before.get(*key) == Some(value) && is_as_written(text, &edited, key);
                if !is_same {
                    replace(&mut edited, &members, at, value).ok_or(DAMAGED)?;
                }
            }
            (Some(at), None) => remove(&mut edited, &members, at).ok_or(DAMAGED)?,
            (None, Some(value)) => insert(&mut edited, &members, key, value).ok_or(DAMAGED)?,
            (None, None) => {}
        }
    }
    if untouched(text, changes) == untouched(&edited, changes) { Ok(edited) } else { Err(DAMAGED) }
}

/// The members that are not changed, byte for byte.
fn untouched<'text>(text: &'text str, changes: &[FieldChange<'_>]) -> Option<Vec<(&'text str, &'text str)>> {
    let members = read::json_members(text)?;
    let kept = members.iter().filter(|member| !changes.iter().any(|(key, _)| *key == member.name));
    kept.map(|member| Some((text.get(member.key.range())?, text.get(member.value.range())?))).collect()
}

fn is_as_written(before: &str, now: &str, key: &str) -> bool {
    raw_value(before, key) == raw_value(now, key)
}

fn raw_value<'text>(text: &'text str, key: &str) -> Option<&'text str> {
    let members = read::json_members(text)?;
    let member = members.iter().find(|member| member.name == key)?;
    text.get(member.value.range())
}

fn replace(text: &mut String, members: &[JsonMember], at: usize, value: &Value) -> Option<()> {
    let written = Style::of(text, members)?.render(value)?;
    text.replace_range(members.get(at)?.value.range(), &written);
    Some(())
}

fn remove(text: &mut String, members: &[JsonMember], at: usize) -> Option<()> {
    let this = members.get(at)?;
    let previous = at.checked_sub(1).and_then(|before| members.get(before));
    let gap = match (previous, members.get(at + 1)) {
        // Remove the comma before it, too.
        (Some(previous), _) => previous.value.end..this.value.end,
        // The next member moves to its position.
        (None, Some(next)) => this.key.start..next.key.start,
        (None, None) => text.find('{')? + 1..this.value.end,
    };
    text.replace_range(gap, "");
    Some(())
}

fn insert(text: &mut String, members: &[JsonMember], key: &str, value: &Value) -> Option<()> {
    let style = Style::of(text, members)?;
    let member = format!("{}{}{}", Value::from(key), style.colon, style.render(value)?);
    if let Some(last) = members.last() {
        text.insert_str(last.value.end, &format!(",{}{member}", style.lead));
    } else {
        let (open, close) = (text.find('{')? + 1, text.rfind('}')?);
        let tail = if style.is_one_line() { "" } else { style.newline };
        text.replace_range(open..close, &format!("{}{member}{tail}{}", style.lead, style.outer));
    }
    Some(())
}

/// The layout of this object, taken from its last member.
struct Style {
    newline: &'static str,
    /// The white space before a key.
    lead: String,
    /// The text between key and value.
    colon: String,
    /// The indentation of the object's members, and of the object itself.
    inner: String,
    outer: String,
}

impl Style {
    fn of(text: &str, members: &[JsonMember]) -> Option<Self> {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let Some(last) = members.last() else { return Some(Self::of_empty(text, newline)) };
        let before = text.get(..last.key.start)?;
        let space = before.get(before.trim_end_matches(SPACE).len()..)?;
        let after = text.get(last.value.end..)?;
        let tail = after.get(..after.find('}')?)?;
        let colon = text.get(last.key.end..last.value.start)?;
        let inner = last_line(space);
        Some(Self {
            newline,
            lead: inner.map_or_else(|| space.to_owned(), |indent| format!("{newline}{indent}")),
            colon: if colon.contains('\n') { ": " } else { colon }.to_owned(),
            inner: inner.unwrap_or_default().to_owned(),
            outer: last_line(tail).unwrap_or_default().to_owned(),
        })
    }

    fn of_empty(text: &str, newline: &'static str) -> Self {
        let inside = text.find('{').zip(text.rfind('}')).and_then(|(open, close)| text.get(open..close));
        let outer = inside.and_then(last_line);
        let inner = outer.map(|outer| format!("{outer}{UNIT}"));
        Self {
            newline,
            lead: inner.as_ref().map_or_else(String::new, |inner| format!("{newline}{inner}")),
            colon: ": ".to_owned(),
            inner: inner.unwrap_or_default(),
            outer: outer.unwrap_or_default().to_owned(),
        }
    }

    fn is_one_line(&self) -> bool {
        !self.lead.contains('\n')
    }

    /// Formats a value with the document's indentation, or on one line if the document is on one line.
    fn render(&self, value: &Value) -> Option<String> {
        if self.is_one_line() {
            return Some(value.to_string());
        }
        let unit = self.inner.strip_prefix(&self.outer).filter(|unit| !unit.is_empty()).unwrap_or(UNIT);
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(unit.as_bytes());
        value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter)).ok()?;
        // Line feeds inside strings are escaped, so each one here is layout.
        Some(String::from_utf8(bytes).ok()?.replace('\n', &format!("{}{}", self.newline, self.inner)))
    }
}

/// The indentation of the last line of white space; `None` if there is no line break.
fn last_line(space: &str) -> Option<&str> {
    space.rsplit_once('\n').map(|(_, indent)| indent)
}

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];
const UNIT: &str = "  ";
