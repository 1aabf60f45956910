//! How does a value read without its secrets, when each text was looked at by itself and in the whole?
//!
//! By itself a text shows what its line breaks, quotes and backslashes hide, which JSON would write otherwise. In the JSON of the
//! whole a secret is told by the name of its field, or goes on in the next item of a list. Neither look replaces the other, but
//! for a result that is one text: it has no fields and no items, and is looked at once. Both look at the value as it came, and
//! what either finds is taken out of each text that it touches: no text and no line is lost. Names and numbers that a secret only
//! goes past, as a key of several lines does where each has its number, are none of it and stay.

use std::{borrow::Cow, ops::Range};

use serde_json::{Map, Value};
use toolgate_policy::DistinctMembers;
use toolgate_secrets::{Detector, Finding, KnownValues, Redacted, Tier};

use super::telling::{is_telling, without_texts};

/// Who is going to read it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reader {
    /// Callers, models and people who approve. Lose what is probably a secret, and are told of which kind it was.
    Caller,
    /// Many, and for years. Lose what may possibly be a secret, and every text under a telling name.
    Journal,
}

/// A value without its secrets.
pub struct Cleared {
    pub value: Value,
    /// What was taken out.
    pub findings: Vec<Finding>,
    /// How much was seen that may only possibly be a secret.
    pub less_sure: usize,
}

/// A text that stands for itself, without its secrets.
pub struct ClearedText {
    pub text: String,
    /// What was taken out.
    pub findings: Vec<Finding>,
    /// How much was seen that may only possibly be a secret.
    pub less_sure: usize,
}

pub fn redact(detector: &Detector, value: Value, reader: Reader) -> Cleared {
    match value {
        Value::String(text) => {
            let ClearedText { text, findings, less_sure } = redact_text(detector, text, reader);
            Cleared { value: Value::String(text), findings, less_sure }
        }
        Value::Array(items) if items.is_empty() => nothing_in(Value::Array(items)),
        Value::Object(members) if members.is_empty() => nothing_in(Value::Object(members)),
        Value::Null | Value::Bool(_) => nothing_in(value),
        _ => redact_structure(detector, value, reader),
    }
}

pub fn redact_text(detector: &Detector, text: String, reader: Reader) -> ClearedText {
    let Redacted { text: left, findings, less_sure } = detector.redact(&text, reader.loses_from());
    let left = match (left, reader) {
        (Cow::Borrowed(_), _) => None,
        (Cow::Owned(left), Reader::Caller) => Some(left),
        (Cow::Owned(_), Reader::Journal) => {
            let places = findings.iter().map(|finding| (finding.span.clone(), finding.clone()));
            Some(without(&text, places.collect(), reader))
        }
    };
    ClearedText { text: left.unwrap_or(text), findings, less_sure }
}

fn nothing_in(value: Value) -> Cleared {
    Cleared { value, findings: Vec::new(), less_sure: 0 }
}

fn redact_structure(detector: &Detector, value: Value, reader: Reader) -> Cleared {
    let mut known = KnownValues::default();
    let json = serde_json::to_string(&value).unwrap_or_default();
    let whole = detector.redact_knowing(&json, reader.loses_from(), &mut known);
    let in_whole = known.len();
    let mut walk = Walk::new(detector, reader, &whole.findings, known);
    let mut value = walk.value(value);
    let Walk { found, less_sure, mut known, .. } = walk;
    let mut findings = [whole.findings.clone(), found].concat();
    // A value found in a later text may also be in an earlier one, so all texts are searched again.
    if known.len() > in_whole {
        let json = serde_json::to_string(&value).unwrap_or_default();
        let in_json = detector.redact_knowing(&json, reader.loses_from(), &mut known).findings;
        let mut again = Walk::new(detector, reader, &in_json, known);
        value = again.value(value);
        findings.extend(in_json.iter().cloned());
        findings.append(&mut again.found);
    }
    Cleared { value, findings, less_sure: whole.less_sure + less_sure }
}

impl Reader {
    const fn loses_from(self) -> Tier {
        match self {
            Self::Caller => Tier::Probable,
            Self::Journal => Tier::Possible,
        }
    }

    fn mark(self, finding: &Finding) -> String {
        match self {
            Self::Caller => finding.mark(),
            Self::Journal => BLOT.to_owned(),
        }
    }
}

struct Walk<'w> {
    detector: &'w Detector,
    reader: Reader,
    /// In order, none overlapping another.
    in_json: &'w [Finding],
    /// Where in the JSON we are.
    at: usize,
    /// Where the latest finding begins that began within a text.
    begun: Option<usize>,
    found: Vec<Finding>,
    less_sure: usize,
    /// A value that was found in one text is redacted in all of them.
    known: KnownValues,
}

impl<'w> Walk<'w> {
    const fn new(detector: &'w Detector, reader: Reader, in_json: &'w [Finding], known: KnownValues) -> Self {
        Self { detector, reader, in_json, at: 0, begun: None, found: Vec::new(), less_sure: 0, known }
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
        // Two keys that differed only in a secret stay two.
        let mut kept = DistinctMembers::with_capacity(members.len());
        self.at += usize::from(members.is_empty());
        for (key, value) in members {
            let is_telling = self.reader == Reader::Journal && is_telling(&key);
            let key = self.after_one(|walk| walk.text(key, is_a_name));
            // Looked at all the same: a key that begins here may go on elsewhere.
            let value = self.after_one(|walk| walk.value(value));
            let value = if is_telling { without_texts(value, BLOT) } else { value };
            kept.insert(key, value);
        }
        self.at += 1;
        Value::Object(kept.into_members())
    }

    /// Before an item stands a bracket or a comma, before a member's value a colon.
    fn after_one<T>(&mut self, then: impl FnOnce(&mut Self) -> T) -> T {
        self.at += 1;
        then(self)
    }

    /// `can_be_passed`: says whether a text that a finding goes past is none of it.
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
        let mut places = places_in(&text, start, in_whole);
        let is_known = |span: &Range<usize>| {
            let next = places.partition_point(|(place, _)| place.end <= span.start);
            places.get(next).is_some_and(|(place, _)| place.start < span.end)
        };
        self.found.extend(by_itself.iter().filter(|finding| !is_known(&finding.span)).cloned());
        places.extend(by_itself.into_iter().map(|finding| (finding.span.clone(), finding)));
        without(&text, merged(places), self.reader)
    }

    /// A number may be a secret too; the mark for it is a text.
    fn other(&mut self, value: Value) -> Value {
        let start = self.at;
        self.at += value.to_string().len();
        let range = start..self.at;
        match self.touching(&range).first() {
            Some(finding) if value.is_number() && !self.is_passed(&range) => {
                Value::String(self.reader.mark(finding))
            }
            _ => value,
        }
    }

    /// Does a finding that began in a text go on behind this, so that this is only in between?
    fn is_passed(&self, range: &Range<usize>) -> bool {
        matches!(self.touching(range), [one]
            if self.begun == Some(one.span.start) && one.span.start < range.start && range.end < one.span.end)
    }

    fn touching(&self, range: &Range<usize>) -> &'w [Finding] {
        let first = self.in_json.partition_point(|finding| finding.span.end <= range.start);
        let last = self.in_json.partition_point(|finding| finding.span.start < range.end);
        self.in_json.get(first..last).unwrap_or_default()
    }
}

/// Not a line of a key: those are longer, or have other characters.
fn is_a_name(key: &str) -> bool {
    let is_of_a_name =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | ' ' | '$' | '@');
    key.len() <= LONGEST_NAME && key.chars().all(is_of_a_name)
}

/// Where findings of the JSON stand in a text that begins there at `start`.
fn places_in(text: &str, start: usize, findings: &[Finding]) -> Vec<(Range<usize>, Finding)> {
    let mut places: Vec<(Range<usize>, Finding)> = Vec::new();
    let mut findings = findings.iter().peekable();
    let mut goes_on = false;
    let mut at = start;
    for (index, byte) in text.bytes().enumerate() {
        let next = at + length_in_json(byte);
        while findings.next_if(|finding| finding.span.end <= at).is_some() {
            goes_on = false;
        }
        if let Some(finding) = findings.peek().filter(|finding| finding.span.start < next) {
            match places.last_mut().filter(|_| goes_on) {
                Some((place, _)) => place.end = index + 1,
                None => places.push((index..index + 1, (*finding).clone())),
            }
            goes_on = true;
        }
        at = next;
    }
    places
}

/// What overlaps becomes one, under the name of the surest.
fn merged(mut places: Vec<(Range<usize>, Finding)>) -> Vec<(Range<usize>, Finding)> {
    places.sort_by_key(|(place, _)| place.start);
    let mut merged: Vec<(Range<usize>, Finding)> = Vec::with_capacity(places.len());
    for (place, finding) in places {
        match merged.last_mut().filter(|(last, _)| place.start < last.end) {
            Some((last, surest)) => {
                last.end = last.end.max(place.end);
                if finding.tier > surest.tier {
                    *surest = finding;
                }
            }
            None => merged.push((place, finding)),
        }
    }
    merged
}

fn without(text: &str, places: Vec<(Range<usize>, Finding)>, reader: Reader) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut from = 0;
    for (place, finding) in places {
        kept.push_str(text.get(from..place.start).unwrap_or_default());
        kept.push_str(&reader.mark(&finding));
        let secret = text.get(place.clone()).filter(|_| reader == Reader::Caller).unwrap_or_default();
        for line in secret.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            kept.push_str(if line.ends_with("\r\n") { "\r\n" } else { "\n" });
        }
        from = place.end;
    }
    kept.push_str(text.get(from..).unwrap_or_default());
    kept
}

/// How many bytes JSON writes for this one.
const fn length_in_json(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..=0x1f => 6,
        _ => 1,
    }
}

const BLOT: &str = "[REDACTED]";
const LONGEST_NAME: usize = 32;

#[cfg(test)]
pub mod tests;
