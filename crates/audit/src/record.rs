//! The line format of a record.
//!
//! `{"entry":…,"hash":"sha256:…","prev":"sha256:…","seq":1,"time":"…"}` is canonical JSON. Every part except the entry
//! and the number has a fixed length and place, so a line has exactly one meaning. If the system clock is behind the
//! time of an earlier record, `,"wallClock":"…"` follows the time.

use sha2::{Digest as _, Sha256};

use crate::{
    RecordDigest, RecordPosition, canonical,
    stamp::{RecordTime, STAMP_LENGTH, Stamp},
};

/// A parsed line. [`RecordLine::is_intact`] checks its digest.
#[derive(Debug)]
pub(crate) struct RecordLine<'a> {
    /// The bytes of the entry. Only its brackets were checked.
    pub(crate) entry: &'a str,
    pub(crate) position: RecordPosition,
    pub(crate) prev: RecordDigest,
    pub(crate) time: RecordTime,
    after_hash: &'a [u8],
}

impl<'a> RecordLine<'a> {
    /// Parses a line without its LF, from both ends. `None` if it does not have the shape of a record.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let (rest, wall_clock) = split_wall_clock(line.strip_suffix(b"\"}")?)?;
        let (rest, stamp) = split_stamp(rest)?;
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
        // A clock that is not behind is never recorded.
        wall_clock.is_none_or(|clock| clock < stamp).then_some(())?;
        Some(Self {
            entry,
            position: RecordPosition { seq: number(seq)?, hash: RecordDigest::from_hex(hash)? },
            prev: RecordDigest::from_hex(prev)?,
            time: RecordTime { stamp, wall_clock },
            after_hash,
        })
    }

    /// Whether the digest matches the rest of the record.
    pub(crate) fn is_intact(&self) -> bool {
        let hasher = Sha256::new()
            .chain_update(BEFORE_ENTRY)
            .chain_update(self.entry.as_bytes())
            .chain_update(self.after_hash);
        RecordDigest::finish(hasher) == self.position.hash
    }

    /// Whether the entry is canonical JSON. Otherwise a duplicate key could hide something.
    pub(crate) fn is_canonical(&self) -> bool {
        canonical::is_canonical(self.entry)
    }
}

/// `,"prev":"sha256:…","seq":2,"time":"…"}`
pub(crate) fn after_hash(prev: RecordDigest, seq: u64, time: RecordTime) -> Vec<u8> {
    let mut rest = Vec::with_capacity(208);
    // Without the quote that ends the digest before it.
    rest.extend_from_slice(BEFORE_PREV.get(1..).unwrap_or_default());
    rest.extend_from_slice(&prev.hex());
    rest.extend_from_slice(BEFORE_SEQ);
    rest.extend_from_slice(seq.to_string().as_bytes());
    rest.extend_from_slice(BEFORE_TIME);
    rest.extend_from_slice(time.stamp.text().as_bytes());
    if let Some(clock) = time.wall_clock {
        rest.extend_from_slice(BEFORE_WALL_CLOCK);
        rest.extend_from_slice(clock.text().as_bytes());
    }
    rest.extend_from_slice(b"\"}");
    rest
}

/// Appends `,"hash":"sha256:…"`.
pub(crate) fn put_hash(line: &mut Vec<u8>, hash: RecordDigest) {
    line.extend_from_slice(BEFORE_HASH);
    line.extend_from_slice(&hash.hex());
    line.push(b'"');
}

/// Removes `","wallClock":"…` from the end, if present. `None` if its value is not a time.
fn split_wall_clock(bytes: &[u8]) -> Option<(&[u8], Option<Stamp>)> {
    let (before, _) = split_end(bytes, STAMP_LENGTH)?;
    match before.strip_suffix(BEFORE_WALL_CLOCK) {
        Some(rest) => split_stamp(bytes).map(|(_, clock)| (rest, Some(clock))),
        None => Some((bytes, None)),
    }
}

fn split_stamp(bytes: &[u8]) -> Option<(&[u8], Stamp)> {
    let (rest, text) = split_end(bytes, STAMP_LENGTH)?;
    Some((rest, Stamp::parse(std::str::from_utf8(text).ok()?)?))
}

fn split_end(bytes: &[u8], length: usize) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(bytes.len().checked_sub(length)?)
}

/// Canonical JSON has no leading zeros, and no integers beyond 2^53.
fn number(digits: &[u8]) -> Option<u64> {
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (!digits.starts_with(b"0") && number <= MAX_SEQ).then_some(number)
}

pub(crate) const BEFORE_ENTRY: &[u8] = br#"{"entry":"#;
const BEFORE_HASH: &[u8] = br#","hash":"sha256:"#;
const BEFORE_PREV: &[u8] = br#"","prev":"sha256:"#;
const BEFORE_SEQ: &[u8] = br#"","seq":"#;
const BEFORE_TIME: &[u8] = br#","time":""#;
const BEFORE_WALL_CLOCK: &[u8] = br#"","wallClock":""#;
const HEX_LENGTH: usize = 64;
const MAX_SEQ: u64 = 1 << 53;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::entry::PreparedEntry;

    fn line_at(time: RecordTime) -> (Vec<u8>, RecordPosition) {
        let entry = PreparedEntry::of_user(&json!({"what": "a \"} b", "hash": "sha256:00"})).unwrap();
        entry.into_line(RecordPosition { seq: 41, hash: RecordDigest::of(b"before") }, time)
    }

    fn line() -> (Vec<u8>, RecordPosition) {
        line_at(RecordTime::at(Stamp::EPOCH))
    }

    /// Written a day after the clock was set back to 1970.
    fn behind() -> RecordTime {
        RecordTime::after(Stamp::of_day("1970-01-02").unwrap(), Stamp::EPOCH)
    }

    #[test]
    fn line_is_canonical_json_and_round_trips() {
        let (line, position) = line();
        let text = std::str::from_utf8(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!(serde_json_canonicalizer::pipe(text).unwrap(), text);

        let parsed = RecordLine::parse(text.as_bytes()).unwrap();
        assert_eq!(parsed.position, position);
        assert_eq!(position.seq, 42);
        assert_eq!(parsed.prev, RecordDigest::of(b"before"));
        assert_eq!(parsed.time, RecordTime::at(Stamp::EPOCH));
        assert_eq!(parsed.entry, r#"{"hash":"sha256:00","what":"a \"} b"}"#);
        assert!(parsed.is_intact() && parsed.is_canonical());

        // The documented rule: the digest of the record without its `hash`.
        let mut record: Value = serde_json::from_str(text).unwrap();
        record.as_object_mut().unwrap().remove("hash");
        assert_eq!(RecordDigest::of(&serde_json_canonicalizer::to_vec(&record).unwrap()), position.hash);
    }

    #[test]
    fn clock_behind_is_part_of_the_record() {
        let (line, position) = line_at(behind());
        let text = std::str::from_utf8(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert!(text.ends_with(
            r#","time":"1970-01-02T00:00:00.000000Z","wallClock":"1970-01-01T00:00:00.000000Z"}"#
        ));
        assert_eq!(serde_json_canonicalizer::pipe(text).unwrap(), text);
        let parsed = RecordLine::parse(text.as_bytes()).unwrap();
        assert_eq!((parsed.time, parsed.position), (behind(), position));
        assert!(parsed.is_intact());
        let ahead = text.replace("\"wallClock\":\"1970-01-01", "\"wallClock\":\"1970-01-02");
        assert!(
            RecordLine::parse(ahead.as_bytes()).is_none(),
            "a clock that is not behind is not a record's"
        );
    }

    #[test]
    fn every_changed_byte_is_detected() {
        every_changed_byte_of(&line().0);
        every_changed_byte_of(&line_at(behind()).0);
    }

    fn every_changed_byte_of(line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap();
        for place in 0..line.len() {
            for change in 1..=255_u8 {
                let mut other = line.to_vec();
                other[place] ^= change;
                assert!(
                    RecordLine::parse(&other).is_none_or(|line| !line.is_intact()),
                    "byte {place} ^ {change}"
                );
            }
        }
        for length in 0..line.len() {
            assert!(RecordLine::parse(&line[..length]).is_none(), "cut at {length}");
        }
    }

    #[test]
    fn other_spelling_of_an_entry_is_not_canonical() {
        for entry in [r#"{"a":1,"a":1}"#, r#"{"b":1,"a":1}"#, r#"{ "a":1}"#, r#"{"a":1.0}"#, r"{no}"] {
            let rest = after_hash(RecordDigest::of(b""), 1, RecordTime::at(Stamp::EPOCH));
            let mut line = [BEFORE_ENTRY, entry.as_bytes()].concat();
            let hash = RecordDigest::of(&[line.as_slice(), &rest].concat());
            put_hash(&mut line, hash);
            line.extend(rest);
            let line = RecordLine::parse(&line).unwrap();
            assert!(line.is_intact() && !line.is_canonical(), "{entry}");
        }
    }
}
