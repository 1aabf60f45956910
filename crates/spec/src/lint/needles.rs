//! Which of many short words stand in a text, and where?
//!
//! An automaton would read the text byte by byte, each step waiting for the last. Here every place is judged by itself:
//! three bytes, letter case folded, choose a bit; only where it is set are words compared. Texts without any of
//! the words cost a few instructions a byte.

use std::ops::ControlFlow;

/// A set of words to look for, whatever their letter case.
pub(super) struct Needles {
    words: Vec<&'static str>,
    /// Where in `by_slot` the words of each slot begin, and one more for the end.
    firsts: Vec<usize>,
    /// The numbers of the words, sorted by the slots they begin in.
    by_slot: Vec<usize>,
    /// Does some word begin in this slot? What `firsts` says, in less room.
    filter: Box<[bool; SLOTS]>,
    /// Does some word begin in this slot, or one byte before it? Asked at every other place only.
    wide_filter: Box<[bool; SLOTS]>,
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
        let after_first =
            words.iter().flat_map(|word| slots_of(word.as_bytes().get(1..).unwrap_or_default()));
        let wide_filter = marked(placed.iter().map(|(slot, _)| *slot).chain(after_first));
        let by_slot = placed.into_iter().map(|(_, number)| number).collect();
        Self { words, firsts, by_slot, filter, wide_filter }
    }

    /// Visits each word and the byte it begins at, from left to right, until told to stop.
    pub(super) fn each(
        &self,
        text: &str,
        mut visit: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let bytes = text.as_bytes();
        let mut slot = 0;
        let (pairs, _) = bytes.as_chunks();
        for (number, [one, two]) in pairs.iter().enumerate() {
            slot = next_slot(next_slot(slot, *one), *two);
            if self.wide_filter.get(slot % SLOTS).copied().unwrap_or_default() {
                let at = number * 2;
                self.compare_at(bytes, at.wrapping_sub(2), &mut visit)?;
                self.compare_at(bytes, at.wrapping_sub(1), &mut visit)?;
            }
        }
        // What begins in the last pair, or after it, has not been asked about.
        for start in (pairs.len() * 2).saturating_sub(2)..bytes.len() {
            self.compare_at(bytes, start, &mut visit)?;
        }
        ControlFlow::Continue(())
    }

    /// As `each`, but what begins with a letter or digit must begin a word, and with no more than two letters be one.
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
        // One bit a byte, the latest lowest: is it a letter or digit?
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
        // The remainder changes nothing; it lets the compiler see that the slot is there.
        self.filter.get(slot % SLOTS).copied().unwrap_or_default()
    }

    #[cold]
    fn compare_at(
        &self,
        bytes: &[u8],
        start: usize,
        visit: &mut impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let at = |offset: usize| bytes.get(start.wrapping_add(offset)).copied().unwrap_or(PAD);
        let slot = (0..3).fold(0, |slot, offset| next_slot(slot, at(offset)));
        self.compare(bytes, start, slot, visit)
    }

    /// A start before the text, which wraps around, is beyond it and matches nothing.
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

#[expect(clippy::large_stack_arrays, reason = "32 KiB, twice a set, when the first document is read")]
fn marked(slots: impl Iterator<Item = usize>) -> Box<[bool; SLOTS]> {
    let mut marks = Box::new([false; SLOTS]);
    for slot in slots {
        if let Some(mark) = marks.get_mut(slot) {
            *mark = true;
        }
    }
    marks
}

/// The slot of three bytes, moved on by one.
fn next_slot(slot: usize, byte: u8) -> usize {
    slot >> 5 | code(byte) << 10
}

/// Words of one or two bytes stand before any others.
fn slots_of(word: &[u8]) -> impl Iterator<Item = usize> {
    let at = |index: usize| word.get(index).map_or(0..=31, |byte| code(*byte)..=code(*byte));
    let (ones, twos, threes) = (at(0), at(1), at(2));
    let pairs = move |one: usize| {
        let threes = threes.clone();
        twos.clone().flat_map(move |two| threes.clone().map(move |three| (one, two, three)))
    };
    ones.flat_map(pairs).map(|(one, two, three)| one | two << 5 | three << 10)
}

/// Five bits a byte. Letters of either case become one; signs fall together, which costs a comparison and no more.
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

    fn found(words: &[&'static str], text: &str) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let _ = Needles::new(words.to_vec()).each(text, |word, start| {
            found.push((start, word));
            ControlFlow::Continue(())
        });
        found.sort_unstable();
        found
    }

    const WORDS: [&str; 7] = ["a", "ab", "abc", "-b", "bcd", "tok", "token"];

    proptest! {
        #[test]
        fn finds_what_a_plain_search_finds(text in "[abcdA-DtokenTOKEN é.-]{0,40}") {
            let lower = text.to_ascii_lowercase();
            let mut expect: Vec<(usize, usize)> = (0..lower.len())
                .flat_map(|start| WORDS.iter().enumerate().map(move |(number, word)| (start, number, *word)))
                .filter(|(start, _, word)| lower.as_bytes()[*start..].starts_with(word.as_bytes()))
                .map(|(start, number, _)| (start, number))
                .collect();
            expect.sort_unstable();
            prop_assert_eq!(found(&WORDS, &text), expect);
        }
    }

    #[test]
    fn stops_when_told() {
        let mut seen = 0;
        let _ = Needles::new(vec!["aa"]).each("aaaa", |_, _| {
            seen += 1;
            ControlFlow::Break(())
        });
        assert_eq!(seen, 1);
    }
}
