//! How is ever so much looked for? By stretches of it: where one stands in a text, it goes on as far as the two agree.
//! What is looked for is kept once, and a number for every few bytes of it.

use std::{collections::BTreeMap, ops::Range};

use serde_json::Value;

use super::SHORTEST;

pub struct Traces {
    /// All of them, each ended by `END`.
    values: Vec<u8>,
    /// Where those of a length begin that are found as a whole or not at all, in the order of their bytes.
    whole: BTreeMap<usize, Vec<usize>>,
    /// Where stretches of the longer ones begin, in the order of their bytes.
    stretches: Vec<usize>,
}

impl Traces {
    /// Of the values as they stand, and as JSON writes them.
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

    /// A value that holds the end of one counts as two.
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

    /// Tells of every place in the text where one of the values, or a part of a long one, stands.
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
                // Another value, which has the same stretch, may agree for longer: its next one begins before the end.
                at = at.max(place.end - STRETCH);
                tell(place);
            }
        }
    }

    fn start_of(&self, wanted: &[u8], starts: &[usize]) -> Option<usize> {
        let order = |start: &usize| stretch(&self.values, *start, wanted.len()).cmp(wanted);
        starts.binary_search_by(order).ok().and_then(|place| starts.get(place)).copied()
    }

    /// How far text and value are the same around a stretch that they have in common.
    fn agreement(&self, text: &[u8], at: usize, start: usize) -> Range<usize> {
        let is_same = |pair: &(&u8, &u8)| pair.0 == pair.1 && *pair.0 != END;
        let (ahead, behind) = (self.values.iter().skip(start), self.values.iter().take(start).rev());
        let ahead = ahead.zip(text.iter().skip(at)).take_while(is_same).count();
        // What agrees from further back has a stretch that begins there.
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

/// In bytes. Long enough that other words hardly agree by chance, and shorter than most addresses.
const STRETCH: usize = 12;
/// A stretch begins at every so many bytes of a value, and one ends with it: a value that stands in a text is covered.
const STEP: usize = 4;
/// Any part of that many bytes holds a stretch, and of a value that has no more there are no parts.
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

    /// Both begin alike, so that the stretches there are those of either.
    #[test]
    fn a_value_is_found_beside_one_that_begins_alike() {
        let (ann, bob) = ("the account of our customer Ann", "the account of our customer Bob");
        check(&[ann, bob], &format!("<{ann}> <{bob}> <{ann}>"), &[ann, bob]);
    }

    #[test]
    fn values_are_found_as_json_writes_them() {
        let written = r#"line one\nline \"two\""#;
        check(&["line one\nline \"two\""], &format!(r#"{{"note":"{written}"}}"#), &[written]);
    }

    #[test]
    fn one_value_does_not_go_on_in_the_next() {
        check(&["first of the two", "second of the two"], "first of the two\0second", &["first of the two"]);
        check(
            &["a zero\0in the middle of it"],
            "a zero\0in the middle of it",
            &["a zero", "in the middle of it"],
        );
    }

    #[test]
    fn what_repeats_itself_is_found_to_its_end() {
        let padded = format!("{}ann", " ".repeat(500));
        check(&[padded.as_str()], &format!("<{}>", " ".repeat(1_234)), &[" "]);
        check(&[padded.as_str()], &format!("<{padded}>"), &[" ", "ann"]);
    }

    /// A caller chooses what is looked for, and so how much it is.
    #[test]
    fn what_is_kept_grows_with_the_values_and_not_faster() {
        for value in ["x".repeat(100_000), "/abcd".repeat(20_000), "long words and more ".repeat(5_000)] {
            let traces = Traces::of([value.as_str()].into_iter());
            assert!(traces.values.len() <= value.len() + 1, "{}", traces.values.len());
            assert!(traces.stretches.len() <= value.len() / STEP, "{}", traces.stretches.len());
            assert!(traces.whole.is_empty());
        }
    }
}
