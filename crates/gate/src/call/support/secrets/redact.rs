//! Redacts the secrets of a JSON value. Each text is searched by itself and as a part of the whole JSON.
//!
//! A text by itself has its real line breaks, quotes and backslashes, which JSON escapes. In the whole JSON, the name
//! of a field identifies a secret, and a secret may continue in the next item of a list. Both searches are needed,
//! except for a result that is a single text. Both search the original value, and their findings are removed from every
//! text they touch. No text and no line is lost. A secret can span names and numbers, such as line numbers in a
//! multi-line key; those are not part of it and stay.

use std::{borrow::Cow, ops::Range};

use serde_json::{Map, Value};
use toolgate_policy::DistinctMembers;
use toolgate_secrets::{Detector, KnownValues, Redacted, SecretFinding, Tier};

use super::secret_names::{is_secret_name, without_texts};

/// The reader of the redacted value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RedactionAudience {
    /// Callers and models. Probable secrets are replaced by a marker that names their kind.
    Caller,
    /// People who approve a call. Like callers, but of a private key only the base64 is redacted.
    Approver,
    /// Readers of the journal, which is kept for years. Possible secrets and all texts in fields with secret names are
    /// redacted.
    Journal,
}

/// A value without its secrets.
pub struct RedactedValue {
    pub value: Value,
    /// The redacted secrets.
    pub findings: Vec<SecretFinding>,
    /// The number of possible secrets that were found.
    pub less_sure: usize,
    /// The number of redacted bytes. Counted for approvers.
    pub hidden_bytes: usize,
}

/// A single text without its secrets.
pub struct RedactedText {
    pub text: String,
    /// The redacted secrets.
    pub findings: Vec<SecretFinding>,
    /// The number of possible secrets that were found.
    pub less_sure: usize,
}

pub fn redact(detector: &Detector, value: Value, reader: RedactionAudience) -> RedactedValue {
    match value {
        Value::String(text) => {
            let RedactedText { text, findings, less_sure } = redact_text(detector, text, reader);
            let hidden_bytes = findings.iter().map(|finding| finding.span.len()).sum();
            RedactedValue { value: Value::String(text), findings, less_sure, hidden_bytes }
        }
        Value::Array(items) if items.is_empty() => nothing_in(Value::Array(items)),
        Value::Object(members) if members.is_empty() => nothing_in(Value::Object(members)),
        Value::Null | Value::Bool(_) => nothing_in(value),
        _ => redact_structure(detector, value, reader),
    }
}

pub fn redact_text(detector: &Detector, text: String, reader: RedactionAudience) -> RedactedText {
    let Redacted { text: left, findings, less_sure } = detector.redact(&text, reader.loses_from());
    let left = match (left, reader) {
        (Cow::Borrowed(_), _) => None,
        (Cow::Owned(left), RedactionAudience::Caller | RedactionAudience::Approver) => Some(left),
        (Cow::Owned(_), RedactionAudience::Journal) => {
            let spots =
                findings.iter().map(|finding| RedactedSpan::new(finding.span.clone(), finding, &text));
            Some(without(&text, spots.collect(), reader).0)
        }
    };
    RedactedText { text: left.unwrap_or(text), findings, less_sure }
}

fn nothing_in(value: Value) -> RedactedValue {
    RedactedValue { value, findings: Vec::new(), less_sure: 0, hidden_bytes: 0 }
}

fn redact_structure(detector: &Detector, value: Value, reader: RedactionAudience) -> RedactedValue {
    let mut known = KnownValues::default();
    let json = serde_json::to_string(&value).unwrap_or_default();
    let whole = detector.redact_knowing(&json, reader.loses_from(), &mut known);
    let in_whole = known.len();
    let mut walk = RedactionWalk::new(detector, reader, (&json, &whole.findings), known);
    let mut value = walk.value(value);
    let RedactionWalk { found, less_sure, mut hidden_bytes, mut known, .. } = walk;
    let mut findings = [whole.findings.clone(), found].concat();
    // A value found in a later text may also be in an earlier one, so all texts are searched again.
    if known.len() > in_whole {
        let json = serde_json::to_string(&value).unwrap_or_default();
        let in_json = detector.redact_knowing(&json, reader.loses_from(), &mut known).findings;
        let mut again = RedactionWalk::new(detector, reader, (&json, &in_json), known);
        value = again.value(value);
        hidden_bytes += again.hidden_bytes;
        findings.extend(in_json.iter().cloned());
        findings.append(&mut again.found);
    }
    RedactedValue { value, findings, less_sure: whole.less_sure + less_sure, hidden_bytes }
}

impl RedactionAudience {
    const fn loses_from(self) -> Tier {
        match self {
            Self::Caller | Self::Approver => Tier::Probable,
            Self::Journal => Tier::Possible,
        }
    }

    fn mark(self, finding: &SecretFinding) -> String {
        match self {
            Self::Caller | Self::Approver => finding.mark(),
            Self::Journal => REDACTED.to_owned(),
        }
    }
}

struct RedactionWalk<'w> {
    detector: &'w Detector,
    reader: RedactionAudience,
    json: &'w str,
    /// Sorted, without overlaps.
    in_json: &'w [SecretFinding],
    /// The current position in the JSON.
    at: usize,
    /// The start of the latest finding that began inside a text.
    begun: Option<usize>,
    found: Vec<SecretFinding>,
    less_sure: usize,
    /// A value that was found in one text is redacted in all of them.
    known: KnownValues,
    hidden_bytes: usize,
}

/// A part of a text that is redacted.
struct RedactedSpan {
    place: Range<usize>,
    finding: SecretFinding,
    /// Whether it is, or is inside, a private key between its markers.
    is_key_block: bool,
}

impl RedactedSpan {
    /// `source` is the text that the finding's span is in.
    fn new(place: Range<usize>, finding: &SecretFinding, source: &str) -> Self {
        let found = source.get(finding.span.clone()).unwrap_or_default();
        let is_key_block = &*finding.kind == "private-key" && found.contains("-----BEGIN");
        Self { place, finding: finding.clone(), is_key_block }
    }
}

impl<'w> RedactionWalk<'w> {
    fn new(
        detector: &'w Detector,
        reader: RedactionAudience,
        (json, in_json): (&'w str, &'w [SecretFinding]),
        known: KnownValues,
    ) -> Self {
        let (found, hidden_bytes, less_sure) = (Vec::new(), 0, 0);
        Self { detector, reader, json, in_json, at: 0, begun: None, found, less_sure, known, hidden_bytes }
    }

    fn value(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text, |_| false)),
            Value::Array(items) => {
                let is_empty = items.is_empty();
                let kept = items.into_iter().map(|item| self.after_one(|walk| walk.value(item))).collect();
                self.at += 1 + usize::from(is_empty);
                Value::Array(kept)
            }
            Value::Object(members) => self.members(members),
            other => self.other(other),
        }
    }

    fn members(&mut self, members: Map<String, Value>) -> Value {
        // Keys that become equal by redaction are kept apart.
        let mut kept = DistinctMembers::with_capacity(members.len());
        self.at += usize::from(members.is_empty());
        for (key, value) in members {
            let is_secret_name = self.reader == RedactionAudience::Journal && is_secret_name(&key);
            let key = self.after_one(|walk| walk.text(key, is_a_name));
            // Searched as well: a key that begins here may continue elsewhere.
            let value = self.after_one(|walk| walk.value(value));
            let value = if is_secret_name { without_texts(value, REDACTED) } else { value };
            kept.insert(key, value);
        }
        self.at += 1;
        Value::Object(kept.into_members())
    }

    /// A bracket or comma precedes an item, and a colon precedes a member's value.
    fn after_one<T>(&mut self, then: impl FnOnce(&mut Self) -> T) -> T {
        self.at += 1;
        then(self)
    }

    /// `can_be_passed` tells whether a text inside a longer finding may stay.
    fn text(&mut self, text: String, can_be_passed: fn(&str) -> bool) -> String {
        let start = self.at + 1;
        let end = start + text.bytes().map(length_in_json).sum::<usize>();
        self.at = end + 1;
        let seen = self.detector.redact_knowing(&text, self.reader.loses_from(), &mut self.known);
        self.less_sure += seen.less_sure;
        let by_itself = seen.findings;
        let is_passed = can_be_passed(&text) && self.is_passed(&(start..end));
        let in_whole = if is_passed { &[] } else { self.touching(&(start..end)) };
        let begun = in_whole.last().map(|finding| finding.span.start).filter(|begun| *begun >= start);
        self.begun = begun.or(self.begun);
        if by_itself.is_empty() && in_whole.is_empty() {
            return text;
        }
        let mut spots = spots_in(&text, start, (in_whole, self.json));
        let is_known = |span: &Range<usize>| {
            let next = spots.partition_point(|spot| spot.place.end <= span.start);
            spots.get(next).is_some_and(|spot| spot.place.start < span.end)
        };
        self.found.extend(by_itself.iter().filter(|finding| !is_known(&finding.span)).cloned());
        spots.extend(by_itself.iter().map(|finding| RedactedSpan::new(finding.span.clone(), finding, &text)));
        let (text, hidden) = without(&text, merged(spots), self.reader);
        self.hidden_bytes += hidden;
        text
    }

    /// A number may be a secret too. Its marker is a text.
    fn other(&mut self, value: Value) -> Value {
        let start = self.at;
        self.at += value.to_string().len();
        let range = start..self.at;
        match self.touching(&range).first() {
            Some(finding) if value.is_number() && !self.is_passed(&range) => {
                self.hidden_bytes += range.len();
                Value::String(self.reader.mark(finding))
            }
            _ => value,
        }
    }

    /// Whether a finding that began in an earlier text continues after this one.
    fn is_passed(&self, range: &Range<usize>) -> bool {
        matches!(self.touching(range), [one]
            if self.begun == Some(one.span.start) && one.span.start < range.start && range.end < one.span.end)
    }

    fn touching(&self, range: &Range<usize>) -> &'w [SecretFinding] {
        let first = self.in_json.partition_point(|finding| finding.span.end <= range.start);
        let last = self.in_json.partition_point(|finding| finding.span.start < range.end);
        self.in_json.get(first..last).unwrap_or_default()
    }
}

/// Lines of a key are longer or have other characters.
fn is_a_name(key: &str) -> bool {
    let is_of_a_name =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | ' ' | '$' | '@');
    key.len() <= LONGEST_NAME && key.chars().all(is_of_a_name)
}

/// The parts of a text that findings in the JSON cover. The text starts at `start` in the JSON.
fn spots_in(text: &str, start: usize, (findings, json): (&[SecretFinding], &str)) -> Vec<RedactedSpan> {
    let mut spots: Vec<RedactedSpan> = Vec::new();
    let mut findings = findings.iter().peekable();
    let mut goes_on = false;
    let mut at = start;
    for (index, byte) in text.bytes().enumerate() {
        let next = at + length_in_json(byte);
        while findings.next_if(|finding| finding.span.end <= at).is_some() {
            goes_on = false;
        }
        if let Some(finding) = findings.peek().filter(|finding| finding.span.start < next) {
            match spots.last_mut().filter(|_| goes_on) {
                Some(spot) => spot.place.end = index + 1,
                None => spots.push(RedactedSpan::new(index..index + 1, finding, json)),
            }
            goes_on = true;
        }
        at = next;
    }
    spots
}

/// Merges overlapping spans under the name of the most certain one.
fn merged(mut spots: Vec<RedactedSpan>) -> Vec<RedactedSpan> {
    spots.sort_by_key(|spot| spot.place.start);
    let mut merged: Vec<RedactedSpan> = Vec::with_capacity(spots.len());
    for spot in spots {
        match merged.last_mut().filter(|last| spot.place.start < last.place.end) {
            Some(last) => {
                last.place.end = last.place.end.max(spot.place.end);
                if spot.finding.tier > last.finding.tier {
                    (last.finding, last.is_key_block) = (spot.finding, spot.is_key_block);
                }
            }
            None => merged.push(spot),
        }
    }
    merged
}

/// The text without these parts, and their number of bytes.
fn without(text: &str, spots: Vec<RedactedSpan>, reader: RedactionAudience) -> (String, usize) {
    let (mut kept, mut hidden) = (String::with_capacity(text.len()), 0);
    let mut from = 0;
    for RedactedSpan { place, finding, is_key_block } in spots {
        kept.push_str(text.get(from..place.start).unwrap_or_default());
        let secret = text.get(place.clone()).unwrap_or_default();
        from = place.end;
        if reader == RedactionAudience::Approver && is_key_block {
            let (shown, lost) = without_key_body(secret, &reader.mark(&finding));
            kept.push_str(&shown);
            hidden += lost;
            continue;
        }
        hidden += secret.len();
        kept.push_str(&reader.mark(&finding));
        let secret = if reader == RedactionAudience::Journal { "" } else { secret };
        for line in secret.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            kept.push_str(if line.ends_with("\r\n") { "\r\n" } else { "\n" });
        }
    }
    kept.push_str(text.get(from..).unwrap_or_default());
    (kept, hidden)
}

/// A private key or a part of one, without its base64: long runs, and short lines directly after one.
fn without_key_body(key: &str, mark: &str) -> (String, usize) {
    let (mut kept, mut hidden, mut is_in_body) = (String::with_capacity(key.len()), 0, false);
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    // A text may contain JSON, whose line breaks are written `\n`.
    let is_line_end = |byte: &u8| matches!(byte, b'\n' | b'\r' | b'\\');
    let mut runs = key.as_bytes().chunk_by(|one, next| is_base64(*one) == is_base64(*next)).peekable();
    while let Some(run) = runs.next() {
        let is_base64 = run.first().copied().is_some_and(is_base64);
        let ends_line = runs.peek().and_then(|next| next.first()).is_none_or(is_line_end);
        let is_last_line = is_in_body && ends_line;
        if is_base64 && (is_last_line || run.len() >= SHORTEST_KEY_LINE || run.ends_with(b"=")) {
            kept.push_str(mark);
            hidden += run.len();
            is_in_body = true;
        } else {
            is_in_body &= run.iter().all(is_line_end);
            kept.push_str(&String::from_utf8_lossy(run));
        }
    }
    (kept, hidden)
}

/// The number of bytes that JSON writes for this byte.
const fn length_in_json(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..=0x1f => 6,
        _ => 1,
    }
}

const REDACTED: &str = "[REDACTED]";
const LONGEST_NAME: usize = 32;
/// Lines of real keys have 64 or more characters. Shorter runs are words.
const SHORTEST_KEY_LINE: usize = 16;

#[cfg(test)]
pub mod tests;
