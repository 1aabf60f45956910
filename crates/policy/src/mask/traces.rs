//! Searches for a large amount of text by short substrings, and extends each match as far as the texts agree.
//! Stores the values once, plus one index per few bytes.

use std::{collections::BTreeMap, ops::Range};

use serde_json::Value;

use super::SHORTEST;

pub struct Traces {
    /// All values, each terminated by `END`.
    values: Vec<u8>,
    /// Start offsets of short values, which match only as a whole; by length, sorted by content.
    whole: BTreeMap<usize, Vec<usize>>,
    /// Start offsets of substrings of the longer values, sorted by content.
    stretches: Vec<usize>,
}

impl Traces {
    /// Indexes the values verbatim and JSON-escaped.
    pub fn of<'v>(values: impl Iterator<Item = &'v str>) -> Self {
        let mut traces = Self { values: Vec::new(), whole: BTreeMap::new(), stretches: Vec::new() };
        for value in values {
            traces.add(value);
            let quoted = Value::from(value).to_string();
            let written = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            if let Some(written) = written.filter(|written| *written != value) {
                traces.add(written);
            }
        }
        for (length, starts) in &mut traces.whole {
            put_in_order(&traces.values, *length, starts);
        }
        put_in_order(&traces.values, STRETCH, &mut traces.stretches);
        traces
    }

    /// A value that contains the terminator counts as two.
    fn add(&mut self, value: &str) {
        let is_long_enough = |part: &&str| part.chars().take(SHORTEST).count() == SHORTEST;
        for part in value.split(char::from(END)).filter(is_long_enough) {
            let begin = self.values.len();
            self.values.extend_from_slice(part.as_bytes());
            self.values.push(END);
            if part.len() > LONGEST_WHOLE {
                let last = begin + part.len() - STRETCH;
                self.stretches.extend((begin..=last).step_by(STEP));
                self.stretches.push(last);
            } else {
                self.whole.entry(part.len()).or_default().push(begin);
            }
        }
    }

    /// Reports every range of the text that equals a value or a part of a long one.
    pub fn find(&self, text: &[u8], mut tell: impl FnMut(Range<usize>)) {
        for (length, starts) in &self.whole {
            for (at, here) in text.windows(*length).enumerate() {
                if self.start_of(here, starts).is_some() {
                    tell(at..at + length);
                }
            }
        }
        let mut at = 0;
        while let Some(here) = text.get(at..at + STRETCH) {
            let place = self.start_of(here, &self.stretches).map(|start| self.agreement(text, at, start));
            at += 1;
            if let Some(place) = place {
                // Another value with the same substring may match further: its next substring starts before the end.
                at = at.max(place.end - STRETCH);
                tell(place);
            }
        }
    }

    fn start_of(&self, wanted: &[u8], starts: &[usize]) -> Option<usize> {
        let order = |start: &usize| stretch(&self.values, *start, wanted.len()).cmp(wanted);
        starts.binary_search_by(order).ok().and_then(|place| starts.get(place)).copied()
    }

    /// How far text and value agree around a common substring.
    fn agreement(&self, text: &[u8], at: usize, start: usize) -> Range<usize> {
        let is_same = |pair: &(&u8, &u8)| pair.0 == pair.1 && *pair.0 != END;
        let (ahead, behind) = (self.values.iter().skip(start), self.values.iter().take(start).rev());
        let ahead = ahead.zip(text.iter().skip(at)).take_while(is_same).count();
        // A longer match to the left has a substring that starts there.
        let back = behind.zip(text.iter().take(at).rev()).take(STEP).take_while(is_same).count();
        at - back..at + ahead
    }
}

fn put_in_order(values: &[u8], length: usize, starts: &mut Vec<usize>) {
    starts.sort_unstable_by(|one, other| stretch(values, *one, length).cmp(stretch(values, *other, length)));
    starts.dedup_by(|one, other| stretch(values, *one, length) == stretch(values, *other, length));
}

fn stretch(values: &[u8], start: usize, length: usize) -> &[u8] {
    values.get(start..start + length).unwrap_or_default()
}

/// Length of a substring in bytes. Long enough to avoid chance matches, and shorter than most e-mail addresses.
const STRETCH: usize = 12;
/// A substring starts at every fourth byte of a value and one ends with it, so the whole value is covered.
const STEP: usize = 4;
/// Any part of more bytes contains a substring. Shorter values match only as a whole.
const LONGEST_WHOLE: usize = STRETCH + STEP - 1;
const END: u8 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[&str], text: &str, expect: &[&str]) {
        let mut shown = text.as_bytes().to_vec();
        Traces::of(values.iter().copied()).find(text.as_bytes(), |place| shown[place].fill(b'#'));
        let hidden =
            expect.iter().fold(text.to_owned(), |text, part| text.replace(part, &"#".repeat(part.len())));
        assert_eq!(String::from_utf8(shown).unwrap(), hidden, "{values:?}");
    }

    #[test]
    fn values_are_found_whole_and_in_part() {
        let long = "Dear Ann Smith, your mail ann@example.org was read.";
        check(&[long], &format!("he said: {long} And so on"), &[long]);
        for part in ["ann@example.org was", "Dear Ann Smith,", "Smith, your mail ann@ex", "e.org was read."] {
            check(&[long], &format!("<{part}>"), &[part]);
        }
        check(&[long], "your mail of Ann, ann@example.com", &[]);
        check(&["short", long, "tiny", "fifteen letters"], "a tiny short one", &["tiny", "short"]);
        check(&["fifteen letters"], "of fifteen letters, fifteen letter", &["fifteen letters"]);
        check(&["abc", ""], "abc", &[]);
        check(&[], "abc", &[]);
    }

    /// Both start with the same text, so they share substrings.
    #[test]
    fn value_is_found_next_to_one_with_the_same_start() {
        let (ann, bob) = ("the account of our customer Ann", "the account of our customer Bob");
        check(&[ann, bob], &format!("<{ann}> <{bob}> <{ann}>"), &[ann, bob]);
    }

    #[test]
    fn values_are_found_as_json_writes_them() {
        let written = r#"line one\nline \"two\""#;
        check(&["line one\nline \"two\""], &format!(r#"{{"note":"{written}"}}"#), &[written]);
    }

    #[test]
    fn match_does_not_continue_into_the_next_value() {
        check(&["first of the two", "second of the two"], "first of the two\0second", &["first of the two"]);
        check(
            &["a zero\0in the middle of it"],
            "a zero\0in the middle of it",
            &["a zero", "in the middle of it"],
        );
    }

    #[test]
    fn repetitive_text_is_found_to_its_end() {
        let padded = format!("{}ann", " ".repeat(500));
        check(&[padded.as_str()], &format!("<{}>", " ".repeat(1_234)), &[" "]);
        check(&[padded.as_str()], &format!("<{padded}>"), &[" ", "ann"]);
    }

    /// A caller chooses the values and their size.
    #[test]
    fn memory_grows_linearly_with_the_values() {
        for value in ["x".repeat(100_000), "/abcd".repeat(20_000), "long words and more ".repeat(5_000)] {
            let traces = Traces::of([value.as_str()].into_iter());
            assert!(traces.values.len() <= value.len() + 1, "{}", traces.values.len());
            assert!(traces.stretches.len() <= value.len() / STEP, "{}", traces.stretches.len());
            assert!(traces.whole.is_empty());
        }
    }
}
