//! A text as it reads without its disguise, and where each of its bytes came from.

use std::ops::Range;

use crate::finding::Encoding;

#[derive(Default)]
pub(crate) struct View {
    pub text: Vec<u8>,
    segments: Vec<Segment>,
}

/// A part of the view and where it came from. Small, for a text full of percent signs has very many.
struct Segment {
    /// Where it begins in the view.
    at: u32,
    /// Where it begins in the original.
    from: u32,
    length: u32,
    /// What was undone; nothing if it stands in the original as it is.
    encoding: Option<Encoding>,
}

impl View {
    /// Bytes that stand in the original at `at` as they are.
    pub(crate) fn keep(&mut self, bytes: &[u8], at: usize) {
        self.add(&(at..at + bytes.len()), bytes, None);
    }

    /// Bytes that `original` stands for; none, if it is to be passed over.
    pub(crate) fn replace(&mut self, original: &Range<usize>, bytes: &[u8], encoding: Encoding) {
        self.add(original, bytes, Some(encoding));
    }

    #[inline]
    fn add(&mut self, original: &Range<usize>, bytes: &[u8], encoding: Option<Encoding>) {
        let (at, from, length) = (short(self.text.len()), short(original.start), short(original.len()));
        self.segments.push(Segment { at, from, length, encoding });
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
        self.segments.partition_point(|segment| segment.at as usize <= at).checked_sub(1)
    }
}

impl Segment {
    fn start_of(&self, at: usize) -> usize {
        self.from as usize + if self.encoding.is_none() { at - self.at as usize } else { 0 }
    }

    fn end_of(&self, at: usize) -> usize {
        let inside = if self.encoding.is_none() { at - self.at as usize + 1 } else { self.length as usize };
        self.from as usize + inside
    }
}

/// INVARIANT: what is looked at together is a window, which is far shorter than what fits.
pub(crate) fn short(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
