//! Finds many short words in a text, ignoring case.
//!
//! An automaton would process byte by byte, each step waiting for the last. Here every position is tested
//! independently: three case-folded bytes select a bit, and words are compared only if it is set. Text without any of
//! the words costs a few instructions per byte.

use std::ops::ControlFlow;

/// A set of words to search for, ignoring case.
pub(super) struct Needles {
    words: Vec<&'static str>,
    /// For each slot, the index in `by_slot` of its first word, plus one entry for the end.
    firsts: Vec<usize>,
    /// The word numbers, sorted by slot.
    by_slot: Vec<usize>,
    /// Whether a word begins in this slot: the information of `firsts` in less memory.
    filter: Box<[bool; SLOTS]>,
}

impl Needles {
    pub(super) fn new(words: Vec<&'static str>) -> Self {
        let numbered = words.iter().enumerate();
        let mut placed: Vec<(usize, usize)> = numbered
            .flat_map(|(number, word)| slots_of(word.as_bytes()).map(move |slot| (slot, number)))
            .collect();
        placed.sort_unstable();
        placed.dedup();
        let firsts: Vec<usize> =
            (0..=SLOTS).map(|slot| placed.partition_point(|(other, _)| *other < slot)).collect();
        let filter = marked(placed.iter().map(|(slot, _)| *slot));
        let by_slot = placed.into_iter().map(|(_, number)| number).collect();
        Self { words, firsts, by_slot, filter }
    }

    /// Visits each word that the text contains, from left to right, until `visit` breaks. A word that starts with a letter or
    /// digit must start a word of the text; one of at most two letters must be a whole word.
    pub(super) fn each_word(
        &self,
        text: &str,
        mut visit: impl FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let bytes = text.as_bytes();
        let is_letter = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
        let mut visit = |number: usize, start: usize| {
            let length = self.words.get(number).map_or(0, |word| word.len());
            let is_inside = is_letter(start) && is_letter(start.wrapping_sub(1));
            let is_part = length <= 2 && is_letter(start) && is_letter(start + length);
            if is_inside || is_part { ControlFlow::Continue(()) } else { visit(number) }
        };
        let mut slot = 0;
        // One bit per byte, the latest lowest: whether it is a letter or digit.
        let mut letters = 0_u8;
        for (ahead, byte) in bytes.iter().enumerate() {
            slot = next_slot(slot, *byte);
            letters = letters << 1 | u8::from(byte.is_ascii_alphanumeric());
            let is_inside = letters & 0b1100 == 0b1100;
            if !is_inside && self.begins(slot) {
                self.compare(bytes, ahead.wrapping_sub(2), slot, &mut visit)?;
            }
        }
        for ahead in bytes.len()..bytes.len() + 2 {
            slot = next_slot(slot, PAD);
            self.compare(bytes, ahead.wrapping_sub(2), slot, &mut visit)?;
        }
        ControlFlow::Continue(())
    }

    fn begins(&self, slot: usize) -> bool {
        // The remainder has no effect; it proves to the compiler that the index is in bounds.
        self.filter.get(slot % SLOTS).copied().unwrap_or_default()
    }

    /// A wrapped start is beyond the end of the text and matches nothing.
    #[cold]
    fn compare(
        &self,
        bytes: &[u8],
        start: usize,
        slot: usize,
        visit: &mut impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some([first, end]) = self.firsts.get(slot..slot + 2) else { return ControlFlow::Continue(()) };
        let rest = bytes.get(start..).unwrap_or_default();
        for number in self.by_slot.get(*first..*end).unwrap_or_default() {
            let word = self.words.get(*number).map_or(&[][..], |word| word.as_bytes());
            if rest.get(..word.len()).is_some_and(|there| there.eq_ignore_ascii_case(word)) {
                visit(*number, start)?;
            }
        }
        ControlFlow::Continue(())
    }
}

#[expect(clippy::large_stack_arrays, reason = "32 KiB once per set, when the first document is read")]
fn marked(slots: impl Iterator<Item = usize>) -> Box<[bool; SLOTS]> {
    let mut marks = Box::new([false; SLOTS]);
    for slot in slots {
        if let Some(mark) = marks.get_mut(slot) {
            *mark = true;
        }
    }
    marks
}

/// Shifts the next byte into the slot of three bytes.
fn next_slot(slot: usize, byte: u8) -> usize {
    slot >> 5 | code(byte) << 10
}

/// A word of one or two bytes may be followed by any bytes.
fn slots_of(word: &[u8]) -> impl Iterator<Item = usize> {
    let at = |index: usize| word.get(index).map_or(0..=31, |byte| code(*byte)..=code(*byte));
    let (ones, twos, threes) = (at(0), at(1), at(2));
    let pairs = move |one: usize| {
        let threes = threes.clone();
        twos.clone().flat_map(move |two| threes.clone().map(move |three| (one, two, three)))
    };
    ones.flat_map(pairs).map(|(one, two, three)| one | two << 5 | three << 10)
}

/// Five bits per byte. Upper and lower case are equal; most signs share a code, which only costs a comparison.
fn code(byte: u8) -> usize {
    CODES.get(usize::from(byte)).copied().map_or(0, usize::from)
}

#[expect(clippy::indexing_slicing, reason = "the table has an entry for every byte")]
const CODES: [u8; 256] = {
    let mut codes = [0; 256];
    let mut byte = 0_u8;
    loop {
        codes[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' => byte & 31,
            b'0'..=b'9' => 27,
            b'-' => 28,
            b'_' => 29,
            b':' | b'/' => 30,
            b'!'..=b'~' => 31,
            _ => 0,
        };
        if byte == u8::MAX {
            break codes;
        }
        byte += 1;
    }
};

const SLOTS: usize = 1 << 15;
const PAD: u8 = b' ';

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(words: &[&'static str], text: &str) -> Vec<usize> {
        let mut found = Vec::new();
        let _ = Needles::new(words.to_vec()).each_word(text, |word| {
            found.push(word);
            ControlFlow::Continue(())
        });
        found.sort_unstable();
        found
    }

    const WORDS: [&str; 7] = ["a", "ab", "abc", "-b", "bcd", "tok", "token"];

    /// Whether the word at `start` counts: see `each_word`.
    fn is_whole(text: &[u8], start: usize, word: &str) -> bool {
        let is_letter = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphanumeric);
        let is_inside = is_letter(start) && start > 0 && is_letter(start - 1);
        let is_part = word.len() <= 2 && is_letter(start) && is_letter(start + word.len());
        !is_inside && !is_part
    }

    proptest! {
        #[test]
        fn finds_what_a_plain_search_finds(text in "[abcdA-DtokenTOKEN é.-]{0,40}") {
            let lower = text.to_ascii_lowercase().into_bytes();
            let mut expect: Vec<usize> = (0..lower.len())
                .flat_map(|start| WORDS.iter().enumerate().map(move |(number, word)| (start, number, *word)))
                .filter(|(start, _, word)| lower[*start..].starts_with(word.as_bytes()))
                .filter(|(start, _, word)| is_whole(&lower, *start, word))
                .map(|(_, number, _)| number)
                .collect();
            expect.sort_unstable();
            prop_assert_eq!(found(&WORDS, &text), expect);
        }
    }

    #[test]
    fn search_stops_on_break() {
        let mut seen = 0;
        let _ = Needles::new(vec!["aaa"]).each_word("aaa aaa", |_| {
            seen += 1;
            ControlFlow::Break(())
        });
        assert_eq!(seen, 1);
    }
}
