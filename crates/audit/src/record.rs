//! How is a record written as a line, and what does a line say?
//!
//! `{"entry":…,"hash":"sha256:…","prev":"sha256:…","seq":1,"time":"…"}`: canonical JSON, so every part but the
//! entry and the number has a fixed length and place, and a line has exactly one reading.

use sha2::{Digest as _, Sha256};

use crate::{
    Digest, Position, canonical,
    stamp::{STAMP_LENGTH, Stamp},
};

/// A line taken apart. Whether it is true is another question: see [`Line::is_intact`].
#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// Untouched bytes of the entry, an object by its brackets only.
    pub(crate) entry: &'a str,
    pub(crate) position: Position,
    pub(crate) prev: Digest,
    pub(crate) stamp: Stamp,
    after_hash: &'a [u8],
}

impl<'a> Line<'a> {
    /// Takes a line without its LF apart, from both ends; none when it is not shaped like a record.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let rest = line.strip_suffix(b"\"}")?;
        let (rest, time) = split_end(rest, STAMP_LENGTH)?;
        let rest = rest.strip_suffix(BEFORE_TIME)?;
        let digits = rest.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let (rest, seq) = split_end(rest, digits)?;
        let rest = rest.strip_suffix(BEFORE_SEQ)?;
        let (rest, prev) = split_end(rest, HEX_LENGTH)?;
        let before_prev = rest.strip_suffix(BEFORE_PREV)?;
        let after_hash = line.get(before_prev.len() + 1..)?;
        let (rest, hash) = split_end(before_prev, HEX_LENGTH)?;
        let entry = rest.strip_suffix(BEFORE_HASH)?.strip_prefix(BEFORE_ENTRY)?;
        let entry = std::str::from_utf8(entry).ok()?;
        (entry.starts_with('{') && entry.ends_with('}')).then_some(())?;
        Some(Self {
            entry,
            position: Position { seq: number(seq)?, hash: Digest::from_hex(hash)? },
            prev: Digest::from_hex(prev)?,
            stamp: Stamp::parse(std::str::from_utf8(time).ok()?)?,
            after_hash,
        })
    }

    /// Whether the record's digest is the one of its other parts.
    pub(crate) fn is_intact(&self) -> bool {
        let hasher = Sha256::new()
            .chain_update(BEFORE_ENTRY)
            .chain_update(self.entry.as_bytes())
            .chain_update(self.after_hash);
        Digest::finish(hasher) == self.position.hash
    }

    /// Whether the entry is spelled in the one way of RFC 8785: nothing can hide in a doubled key.
    pub(crate) fn is_canonical(&self) -> bool {
        canonical::is_canonical(self.entry)
    }
}

/// `,"prev":"sha256:…","seq":2,"time":"…"}`
pub(crate) fn after_hash(prev: Digest, seq: u64, stamp: Stamp) -> Vec<u8> {
    let mut rest = Vec::with_capacity(160);
    // Without the quote that ends the digest before it.
    rest.extend_from_slice(BEFORE_PREV.get(1..).unwrap_or_default());
    rest.extend_from_slice(&prev.hex());
    rest.extend_from_slice(BEFORE_SEQ);
    rest.extend_from_slice(seq.to_string().as_bytes());
    rest.extend_from_slice(BEFORE_TIME);
    rest.extend_from_slice(stamp.text().as_bytes());
    rest.extend_from_slice(b"\"}");
    rest
}

/// Adds `,"hash":"sha256:…"`.
pub(crate) fn put_hash(line: &mut Vec<u8>, hash: Digest) {
    line.extend_from_slice(BEFORE_HASH);
    line.extend_from_slice(&hash.hex());
    line.push(b'"');
}

fn split_end(bytes: &[u8], length: usize) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(bytes.len().checked_sub(length)?)
}

/// Canonical JSON has no leading zeroes, and no integers beyond 2^53.
fn number(digits: &[u8]) -> Option<u64> {
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (!digits.starts_with(b"0") && number <= MAX_SEQ).then_some(number)
}

pub(crate) const BEFORE_ENTRY: &[u8] = br#"{"entry":"#;
const BEFORE_HASH: &[u8] = br#","hash":"sha256:"#;
const BEFORE_PREV: &[u8] = br#"","prev":"sha256:"#;
const BEFORE_SEQ: &[u8] = br#"","seq":"#;
const BEFORE_TIME: &[u8] = br#","time":""#;
const HEX_LENGTH: usize = 64;
const MAX_SEQ: u64 = 1 << 53;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::entry::Entry;

    fn line() -> (Vec<u8>, Position) {
        let entry = Entry::of_user(&json!({"what": "a \"} b", "hash": "sha256:00"})).unwrap();
        entry.into_line(Position { seq: 41, hash: Digest::of(b"before") }, Stamp::EPOCH)
    }

    #[test]
    fn a_line_is_canonical_json_and_says_what_was_written() {
        let (line, position) = line();
        let text = std::str::from_utf8(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!(serde_json_canonicalizer::pipe(text).unwrap(), text);

        let parsed = Line::parse(text.as_bytes()).unwrap();
        assert_eq!(parsed.position, position);
        assert_eq!(position.seq, 42);
        assert_eq!(parsed.prev, Digest::of(b"before"));
        assert_eq!(parsed.stamp, Stamp::EPOCH);
        assert_eq!(parsed.entry, r#"{"hash":"sha256:00","what":"a \"} b"}"#);
        assert!(parsed.is_intact() && parsed.is_canonical());

        // The rule as the document has it: the digest of the record without its `hash`.
        let mut record: Value = serde_json::from_str(text).unwrap();
        record.as_object_mut().unwrap().remove("hash");
        assert_eq!(Digest::of(&serde_json_canonicalizer::to_vec(&record).unwrap()), position.hash);
    }

    #[test]
    fn every_changed_byte_is_seen() {
        let (line, _) = line();
        let line = line.strip_suffix(b"\n").unwrap();
        for place in 0..line.len() {
            for change in 1..=255_u8 {
                let mut other = line.to_vec();
                other[place] ^= change;
                assert!(Line::parse(&other).is_none_or(|line| !line.is_intact()), "byte {place} ^ {change}");
            }
        }
        for length in 0..line.len() {
            assert!(Line::parse(&line[..length]).is_none(), "cut at {length}");
        }
    }

    #[test]
    fn another_spelling_of_an_entry_is_not_canonical() {
        for entry in [r#"{"a":1,"a":1}"#, r#"{"b":1,"a":1}"#, r#"{ "a":1}"#, r#"{"a":1.0}"#, r"{no}"] {
            let rest = after_hash(Digest::of(b""), 1, Stamp::EPOCH);
            let mut line = [BEFORE_ENTRY, entry.as_bytes()].concat();
            let hash = Digest::of(&[line.as_slice(), &rest].concat());
            put_hash(&mut line, hash);
            line.extend(rest);
            let line = Line::parse(&line).unwrap();
            assert!(line.is_intact() && !line.is_canonical(), "{entry}");
        }
    }
}
