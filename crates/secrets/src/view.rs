//! A text as it reads without its disguise, and where each of its bytes came from.

use std::ops::Range;

use crate::finding::Encoding;

#[derive(Default)]
pub(crate) struct View {
    pub text: Vec<u8>,
    segments: Vec<Segment>,
}

/// A part of the view and where it came from.
struct Segment {
    /// Where it begins in the view.
    at: usize,
    origin: Range<usize>,
    /// What was undone; nothing if it stands in the original as it is.
    encoding: Option<Encoding>,
}

impl View {
    /// Bytes that stand in the original at `at` as they are.
    pub(crate) fn keep(&mut self, bytes: &[u8], at: usize) {
        self.segments.push(Segment { at: self.text.len(), origin: at..at + bytes.len(), encoding: None });
        self.text.extend_from_slice(bytes);
    }

    /// Bytes that `original` stands for; none, if it is to be passed over.
    pub(crate) fn replace(&mut self, original: &Range<usize>, bytes: &[u8], encoding: Encoding) {
        let at = self.text.len();
        self.segments.push(Segment { at, origin: original.clone(), encoding: Some(encoding) });
        self.text.extend_from_slice(bytes);
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.segments.clear();
    }

    /// How a part is written in the original, and where; nothing if it is written there as it is here.
    pub(crate) fn original(&self, part: &Range<usize>) -> Option<(Range<usize>, Encoding)> {
        let first = self.segment_of(part.start)?;
        let last = self.segment_of(part.end.checked_sub(1)?)?;
        let encoding = self.segments.get(first..=last)?.iter().find_map(|segment| segment.encoding)?;
        Some((self.origin(part)?, encoding))
    }

    /// The same, also where a part is written as it is here: what was undone before it, or else behind it, lets it be seen.
    pub(crate) fn original_or_beside(&self, part: &Range<usize>) -> Option<(Range<usize>, Encoding)> {
        self.original(part).or_else(|| {
            let (before, behind) = self.segments.split_at_checked(self.segment_of(part.start)?)?;
            let encoding = before.iter().rev().chain(behind).find_map(|segment| segment.encoding)?;
            Some((self.origin(part)?, encoding))
        })
    }

    /// Where a part stands in the original.
    pub(crate) fn origin(&self, part: &Range<usize>) -> Option<Range<usize>> {
        let first = self.segments.get(self.segment_of(part.start)?)?;
        let last = self.segments.get(self.segment_of(part.end.checked_sub(1)?)?)?;
        Some(first.start_of(part.start)..last.end_of(part.end - 1))
    }

    /// The last segment that begins at or before `at`; those before it that begin there too are empty.
    fn segment_of(&self, at: usize) -> Option<usize> {
        self.segments.partition_point(|segment| segment.at <= at).checked_sub(1)
    }
}

impl Segment {
    fn start_of(&self, at: usize) -> usize {
        self.origin.start + if self.encoding.is_none() { at - self.at } else { 0 }
    }

    fn end_of(&self, at: usize) -> usize {
        if self.encoding.is_none() { self.origin.start + (at - self.at) + 1 } else { self.origin.end }
    }
}
