//! Checks and serialises an entry before it is appended.
//!
//! This happens before the journal's lock is taken. Only the end of the line depends on the chain.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{JournalError, RecordDigest, RecordPosition, canonical, record, stamp::RecordTime};

/// The first part of a line, `{"entry":…`, and the hash state after it.
#[derive(Debug)]
pub(crate) struct PreparedEntry {
    line: Vec<u8>,
    hasher: Sha256,
}

impl PreparedEntry {
    /// An entry of a user of the journal, who must not use the kinds reserved for the journal.
    pub(crate) fn of_user<E: Serialize>(entry: &E) -> Result<Self, JournalError> {
        let entry = Self::of_journal(entry)?;
        match entry.reserved_kind() {
            Some(kind) => Err(JournalError::Entry(format!(
                "`kind` `{kind}` is reserved for the journal; choose another kind"
            ))),
            None => Ok(entry),
        }
    }

    pub(crate) fn of_journal<E: Serialize>(entry: &E) -> Result<Self, JournalError> {
        let mut line = Vec::with_capacity(USUAL_LINE);
        line.extend_from_slice(record::BEFORE_ENTRY);
        canonical::write(entry, &mut line).map_err(|error| JournalError::Entry(error.to_string()))?;
        let entry = Self { hasher: Sha256::new().chain_update(&line), line };
        entry.check()?;
        Ok(entry)
    }

    /// The complete line with LF, as the record after `previous`.
    pub(crate) fn into_line(
        mut self,
        previous: RecordPosition,
        time: RecordTime,
    ) -> (Vec<u8>, RecordPosition) {
        let seq = previous.seq + 1;
        let rest = record::after_hash(previous.hash, seq, time);
        self.hasher.update(&rest);
        let hash = RecordDigest::finish(self.hasher);
        record::put_hash(&mut self.line, hash);
        self.line.extend_from_slice(&rest);
        self.line.push(b'\n');
        (self.line, RecordPosition { seq, hash })
    }

    fn check(&self) -> Result<(), JournalError> {
        let text = self.text();
        if text.first() != Some(&b'{') {
            return Err(JournalError::Entry("it is not a JSON object; wrap it in one".to_owned()));
        }
        if text.len() > MAX_ENTRY {
            let size = text.len();
            return Err(JournalError::Entry(format!(
                "it has {size} bytes, but at most {MAX_ENTRY} are allowed; write a digest instead"
            )));
        }
        // Readers reject deep nesting, so entries that could not be read back are not written. The number of brackets
        // is an upper bound of the depth, and enough for almost every entry.
        if brackets(text) > MAX_DEPTH && depth(text) > MAX_DEPTH {
            return Err(JournalError::Entry(format!(
                "it is nested deeper than {MAX_DEPTH} levels; write a digest instead of the inner part"
            )));
        }
        Ok(())
    }

    fn reserved_kind(&self) -> Option<&'static str> {
        let text = std::str::from_utf8(self.text()).unwrap_or_default();
        // Canonical JSON has one spelling, so an entry without these bytes has no such member.
        let found = RESERVED.into_iter().find(|(_, spelling)| text.contains(spelling))?;
        let entry: Value = serde_json::from_str(text).unwrap_or_default();
        (entry.get("kind").and_then(Value::as_str) == Some(found.0)).then_some(found.0)
    }

    fn text(&self) -> &[u8] {
        self.line.get(record::BEFORE_ENTRY.len()..).unwrap_or_default()
    }
}

/// Counts in chunks that fit a byte, which the compiler vectorises.
fn brackets(text: &[u8]) -> usize {
    // `{` and `[` differ in this bit only.
    let in_piece = |piece: &[u8]| piece.iter().map(|byte| u8::from(byte | 0x20 == b'{')).sum::<u8>();
    text.chunks(usize::from(u8::MAX)).map(|piece| usize::from(in_piece(piece))).sum()
}

/// The depth of canonical JSON.
fn depth(text: &[u8]) -> usize {
    let (mut now, mut most, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' if !in_string => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

pub(crate) const CHECKPOINT: &str = "checkpoint";
pub(crate) const RECOVERED: &str = "recovered";
const RESERVED: [(&str, &str); 2] =
    [(CHECKPOINT, r#""kind":"checkpoint""#), (RECOVERED, r#""kind":"recovered""#)];
/// Enough for the record of a call and the end of the line.
const USUAL_LINE: usize = 2560;
const MAX_DEPTH: usize = 100;
const MAX_ENTRY: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(entry: &Value, expected: &str) {
        let outcome = match PreparedEntry::of_user(entry) {
            Ok(entry) => String::from_utf8(entry.text().to_vec()).unwrap(),
            Err(error) => error.to_string(),
        };
        assert!(outcome.starts_with(expected), "{outcome}");
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!("[[[{{{"), |inner, _| json!({ "a": inner }))
    }

    #[test]
    fn entry_is_a_canonical_object() {
        check(&json!({"b": 1.0, "a": "x\n\u{1}é", "B": [1e21]}), r#"{"B":[1e+21],"a":"x\n\u0001é","b":1}"#);
        check(&json!([1]), "the entry cannot be journalled: it is not a JSON object");
        check(&json!("{"), "the entry cannot be journalled: it is not a JSON object");
    }

    #[test]
    fn entry_that_could_not_be_read_back_is_refused() {
        check(&nested(100), r#"{"a":{"#);
        check(&nested(101), "the entry cannot be journalled: it is nested deeper");
        check(&json!({"flat": vec![json!([]); 500]}), r#"{"flat":[[]"#);
        assert_eq!(brackets("[{[}]a{".repeat(300).as_bytes()), 1_200);
        check(&json!({"long": "x".repeat(MAX_ENTRY)}), "the entry cannot be journalled: it has");
    }

    #[test]
    fn reserved_kinds_are_refused() {
        check(&json!({"kind": "checkpoint"}), "the entry cannot be journalled: `kind` `checkpoint`");
        check(&json!({"kind": "recovered", "a": 1}), "the entry cannot be journalled: `kind` `recovered`");
        check(&json!({"inner": {"kind": "checkpoint"}}), r#"{"inner""#);
        check(&json!({"text": r#""kind":"checkpoint""#}), r#"{"text""#);
        check(&json!({"kind": "call"}), r#"{"kind":"call"}"#);
    }
}
