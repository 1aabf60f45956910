//! A decoded text that maps each byte to its position in the original.

use std::ops::Range;

use crate::finding::Encoding;

#[derive(Default)]
pub(crate) struct TextView {
    pub text: Vec<u8>,
    segments: Vec<ViewSegment>,
}

/// A part of the view and its origin. Small, because a text full of percent signs has very many.
struct ViewSegment {
    /// Its start in the view.
    at: u32,
    /// Its start in the original.
    from: u32,
    length: u32,
    /// The undone encoding; `None` if the original is the same.
    encoding: Option<Encoding>,
}

impl TextView {
    /// Appends bytes that are unchanged in the original at `at`.
    pub(crate) fn keep(&mut self, bytes: &[u8], at: usize) {
        self.add(&(at..at + bytes.len()), bytes, None);
    }

    /// Appends the bytes that `original` decodes to; none to skip it.
    pub(crate) fn replace(&mut self, original: &Range<usize>, bytes: &[u8], encoding: Encoding) {
        self.add(original, bytes, Some(encoding));
    }

    #[inline]
    fn add(&mut self, original: &Range<usize>, bytes: &[u8], encoding: Option<Encoding>) {
        let (at, from, length) = (short(self.text.len()), short(original.start), short(original.len()));
        self.segments.push(ViewSegment { at, from, length, encoding });
        self.text.extend_from_slice(bytes);
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.segments.clear();
    }

    /// Returns the origin and encoding of a part; `None` if it is unchanged in the original.
    pub(crate) fn original(&self, part: &Range<usize>) -> Option<(Range<usize>, Encoding)> {
        let first = self.segment_of(part.start)?;
        let last = self.segment_of(part.end.checked_sub(1)?)?;
        let encoding = self.segments.get(first..=last)?.iter().find_map(|segment| segment.encoding)?;
        Some((self.origin(part)?, encoding))
    }

    /// The same, but also for an unchanged part next to a disguise: decoding that before or after it made it visible.
    pub(crate) fn original_or_beside(&self, part: &Range<usize>) -> Option<(Range<usize>, Encoding)> {
        self.original(part).or_else(|| {
            let (before, behind) = self.segments.split_at_checked(self.segment_of(part.start)?)?;
            let encoding = before.iter().rev().chain(behind).find_map(|segment| segment.encoding)?;
            Some((self.origin(part)?, encoding))
        })
    }

    /// The position of a part in the original.
    pub(crate) fn origin(&self, part: &Range<usize>) -> Option<Range<usize>> {
        let first = self.segments.get(self.segment_of(part.start)?)?;
        let last = self.segments.get(self.segment_of(part.end.checked_sub(1)?)?)?;
        Some(first.start_of(part.start)..last.end_of(part.end - 1))
    }

    /// The last segment that begins at or before `at`; earlier ones with the same start are empty.
    fn segment_of(&self, at: usize) -> Option<usize> {
        self.segments.partition_point(|segment| segment.at as usize <= at).checked_sub(1)
    }
}

impl ViewSegment {
    fn start_of(&self, at: usize) -> usize {
        self.from as usize + if self.encoding.is_none() { at - self.at as usize } else { 0 }
    }

    fn end_of(&self, at: usize) -> usize {
        let inside = if self.encoding.is_none() { at - self.at as usize + 1 } else { self.length as usize };
        self.from as usize + inside
    }
}

/// INVARIANT: positions are within a window, which is far smaller than `u32::MAX`.
pub(crate) fn short(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
