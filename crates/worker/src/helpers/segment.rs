//! Finds the boundaries of graphemes, words and sentences, with the segmentation data of the Unicode CLDR.

#[cfg(test)]
mod tests;

use std::fmt::Display;

use icu_segmenter::{
    GraphemeClusterSegmenter, SentenceSegmenter, WordSegmenter,
    options::{SentenceBreakOptions, WordBreakOptions},
};

use super::{HelperAnswer, HelperError, locale};

/// Input: the granularity, a space, the locale, a line feed and the text. Returns the ends of the segments; see
/// `Op::Segment`.
pub fn segment(question: &str) -> Result<HelperAnswer, HelperError> {
    let (header, text) = question.split_once('\n').unwrap_or((question, ""));
    let (granularity, tag) = header.split_once(' ').unwrap_or((header, ""));
    if text.len() > MAX_BYTES {
        return Err(invalid("text-too-long", "the text to segment has more than 1 MiB; split it first"));
    }
    let Some(locale) = locale(tag) else { return Ok(HelperAnswer::Nothing) };
    Ok(HelperAnswer::Bytes(match granularity {
        "grapheme" => encode(text, GraphemeClusterSegmenter::new().segment_str(text).map(|end| (end, None))),
        "word" => {
            let mut options = WordBreakOptions::default();
            options.content_locale = Some(&locale.id);
            let segmenter = WordSegmenter::try_new_dictionary(options).map_err(|error| no_data(&error))?;
            let words = segmenter.as_borrowed().segment_str(text).iter_with_word_type();
            encode(text, words.map(|(end, kind)| (end, Some(kind.is_word_like()))))
        }
        "sentence" => {
            let mut options = SentenceBreakOptions::default();
            options.content_locale = Some(&locale.id);
            let segmenter = SentenceSegmenter::try_new(options).map_err(|error| no_data(&error))?;
            encode(text, segmenter.as_borrowed().segment_str(text).map(|end| (end, None)))
        }
        _ => return Err(invalid("bad-question", "expected grapheme, word or sentence")),
    }))
}

/// Converts byte offsets of UTF-8 to UTF-16 code units, and sets the highest bit for words.
fn encode(text: &str, boundaries: impl Iterator<Item = (usize, Option<bool>)>) -> Vec<u8> {
    let (mut start, mut units) = (0, 0u32);
    let mut encoded = Vec::new();
    for (end, is_word) in boundaries {
        let Some(segment) = text.get(start..end).filter(|segment| !segment.is_empty()) else { continue };
        start = end;
        // The sum is at most `MAX_BYTES`, which leaves the highest bit free.
        units = segment.encode_utf16().fold(units, |units, _| units.saturating_add(1));
        // The library loses the type of a word that ends with a combining mark.
        let is_word = is_word.is_some_and(|known| known || segment.starts_with(char::is_alphabetic));
        encoded.extend((units | u32::from(is_word) << 31).to_le_bytes());
    }
    encoded
}

fn no_data(error: &impl Display) -> HelperError {
    HelperError::runtime(HELPER, "no-data", error.to_string())
}

fn invalid(reason: &str, message: &str) -> HelperError {
    HelperError::invalid(HELPER, reason, message)
}

const HELPER: &str = "Intl.Segmenter";
/// Segmentation cannot be interrupted; this size took 60 to 170 ms in a release build on a busy machine.
const MAX_BYTES: usize = 1 << 20;
