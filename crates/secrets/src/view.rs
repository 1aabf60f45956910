//! A text as it reads without its disguise, and where each of its bytes came from.

use std::ops::Range;

use crate::finding::Encoding;

#[derive(Default)]
pub(crate) struct View {
    pub text: Vec<u8>,
    /// Where in the original each byte begins and ends.
    origins: Vec<(usize, usize)>,
    /// Where in `text` something was undone, and what.
    edits: Vec<(usize, Encoding)>,
}

impl View {
    /// Bytes that stand in the original at `at` as they are.
    pub(crate) fn keep(&mut self, bytes: &[u8], at: usize) {
        self.text.extend_from_slice(bytes);
        self.origins.extend((at..at + bytes.len()).map(|at| (at, at + 1)));
    }

    /// Bytes that `original` stands for; none, if it is to be passed over.
    pub(crate) fn replace(&mut self, original: &Range<usize>, bytes: &[u8], encoding: Encoding) {
        self.edits.push((self.text.len(), encoding));
        self.text.extend_from_slice(bytes);
        self.origins.extend(bytes.iter().map(|_| (original.start, original.end)));
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.origins.clear();
        self.edits.clear();
    }

    /// How a part is written in the original, and where; nothing if it is written there as it is here.
    pub(crate) fn original(&self, part: &Range<usize>) -> Option<(Range<usize>, Encoding)> {
        let first = self.edits.partition_point(|(at, _)| *at < part.start);
        let (_, encoding) = self.edits.get(first).filter(|(at, _)| *at < part.end)?;
        let (start, _) = *self.origins.get(part.start)?;
        let (_, end) = *self.origins.get(part.end.checked_sub(1)?)?;
        Some((start..end, *encoding))
    }
}
