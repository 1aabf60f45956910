//! Finds and decodes keywords that are encoded in base64 or hex.

use std::{collections::BTreeSet, ops::Range};

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{GeneralPurpose, general_purpose::NO_PAD},
};

use crate::{
    literals::{LiteralCoding, Needle, NeedleMeaning},
    rule::KeywordCase,
};

/// The keyword that an encoded needle decodes to.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Keyword {
    pub text: Box<[u8]>,
    pub case: KeywordCase,
}

/// A run of encoded text and the alignment of its groups.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct EncodedRun {
    pub span: Range<usize>,
    /// The start of the first whole group.
    pub from: usize,
    pub coding: EncodedGroup,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EncodedGroup {
    Base64,
    Hex,
}

impl Keyword {
    /// The possible beginnings of the keyword. Encodings do not preserve case-insensitivity, so a case-insensitive
    /// keyword is searched by its first letters in every case combination.
    pub(crate) fn beginnings(&self) -> Vec<Vec<u8>> {
        match self.case {
            KeywordCase::Exact => vec![self.text.to_vec()],
            KeywordCase::Ignored => {
                self.text.iter().take(SPELLED).fold(vec![Vec::new()], |beginnings, letter| {
                    let cases = BTreeSet::from([letter.to_ascii_lowercase(), letter.to_ascii_uppercase()]);
                    let longer =
                        |beginning: &Vec<u8>, case| beginning.iter().copied().chain([case]).collect();
                    cases.iter().flat_map(|case| beginnings.iter().map(|one| longer(one, *case))).collect()
                })
            }
        }
    }

    /// Returns the rest of a text that begins with the keyword.
    fn strip<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        let (beginning, rest) = text.split_at_checked(self.text.len())?;
        let is_it = match self.case {
            KeywordCase::Exact => *beginning == *self.text,
            KeywordCase::Ignored => beginning.eq_ignore_ascii_case(&self.text),
        };
        is_it.then_some(rest)
    }
}

/// The needle that finds this keyword (by index and beginning) in hex.
pub(crate) fn hex_needle(beginning: &[u8], at: usize) -> Needle {
    let meaning = NeedleMeaning::Coded { coding: LiteralCoding::Hex, keyword: at };
    Needle { text: hex(beginning).into(), folds_case: true, meaning }
}

/// The needles that find this keyword (by index and beginning) in base64, whatever precedes it.
pub(crate) fn base64_needles(beginning: &[u8], at: usize) -> Vec<Needle> {
    let needle = |offset, text: Vec<u8>| {
        let meaning = NeedleMeaning::Coded { coding: LiteralCoding::Base64 { offset }, keyword: at };
        Needle { text: text.into(), folds_case: false, meaning }
    };
    let texts = |offset| {
        let fixed = fixed_base64(beginning, offset);
        let is_short = fixed.iter().any(|text| text.len() < MIN_NEEDLE);
        let longer = if is_short { longer_base64(beginning, offset) } else { fixed };
        longer.into_iter().map(move |text| needle(offset, text))
    };
    (0..3).flat_map(texts).collect()
}

/// The same and one character more, which depends on the byte behind the keyword too. That byte is text.
fn longer_base64(keyword: &[u8], offset: usize) -> Vec<Vec<u8>> {
    let length = fixed_base64(keyword, offset).first().map_or(0, Vec::len) + 1;
    let followed = (b'\t'..=b'~').filter(|byte| is_text(*byte)).flat_map(|byte| {
        let longer: Vec<u8> = keyword.iter().copied().chain([byte, 0]).collect();
        fixed_base64(&longer, offset)
    });
    let texts: BTreeSet<Vec<u8>> =
        followed.filter_map(|text| text.get(..length).map(<[u8]>::to_vec)).collect();
    texts.into_iter().collect()
}

/// The base64 characters that depend on `keyword` alone, `offset` bytes into a group, in each alphabet.
pub(crate) fn fixed_base64(keyword: &[u8], offset: usize) -> Vec<Vec<u8>> {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(keyword);
    let first = (offset * 8).div_ceil(6);
    let count = padded.len() * 8 / 6;
    let mut texts: Vec<Vec<u8>> = [&STANDARD_ENGINE, &URL_ENGINE]
        .iter()
        .map(|engine| engine.encode(&padded).into_bytes())
        .filter_map(|text| text.get(first..count).map(<[u8]>::to_vec))
        .collect();
    texts.dedup();
    texts
}

/// Returns the run around a hit, if it contains the whole keyword.
pub(crate) fn run(hay: &[u8], at: usize, coding: LiteralCoding, keyword: &Keyword) -> Option<EncodedRun> {
    let (group, width, from, skip) = match coding {
        LiteralCoding::Base64 { offset } => {
            (EncodedGroup::Base64, 4, at.checked_sub((offset * 8).div_ceil(6))?, offset)
        }
        LiteralCoding::Hex => (EncodedGroup::Hex, 2, at, 0),
    };
    let groups = match group {
        EncodedGroup::Base64 => (skip + keyword.text.len() + MIN_TEXT).div_ceil(3),
        EncodedGroup::Hex => keyword.text.len() + MIN_TEXT,
    };
    let beginning = decode(hay.get(from..from + groups * width)?, group);
    let follows = keyword.strip(beginning.get(skip..)?)?;
    // Three or four bytes of a keyword occur in images by chance; text after them does not.
    if follows.is_empty() || !follows.iter().all(|byte| is_text(*byte)) {
        return None;
    }
    let belongs = |byte: &u8| match group {
        EncodedGroup::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_'),
        EncodedGroup::Hex => byte.is_ascii_hexdigit(),
    };
    let before = hay.get(..from)?.iter().rev().take_while(|byte| belongs(byte)).count();
    let after = hay.get(from..)?.iter().take_while(|byte| belongs(byte)).count();
    let span = from - before..from + after;
    Some(EncodedRun { from: span.start + before % width, span, coding: group })
}

impl EncodedRun {
    pub(crate) fn decoded(&self, hay: &[u8]) -> Vec<u8> {
        decode(hay.get(self.from..self.span.end).unwrap_or_default(), self.coding)
    }

    /// The span to redact for a secret at `decoded`: the whole run if it is short, otherwise the groups that encode the
    /// secret.
    pub(crate) fn covering(&self, hay: &[u8], decoded: &Range<usize>) -> Range<usize> {
        let padding =
            hay.get(self.span.end..).unwrap_or_default().iter().take(2).take_while(|byte| **byte == b'=');
        let end = self.span.end + padding.count();
        if self.span.len() <= WHOLE_RUN {
            return self.span.start..end;
        }
        let (bytes, characters) = match self.coding {
            EncodedGroup::Base64 => (3, 4),
            EncodedGroup::Hex => (1, 2),
        };
        let from = self.from + decoded.start / bytes * characters;
        let until = self.from + decoded.end.div_ceil(bytes) * characters;
        from..until.min(end)
    }
}

fn is_text(byte: u8) -> bool {
    byte.is_ascii_graphic() || byte.is_ascii_whitespace()
}

/// Decodes as much as possible; an invalid end is dropped.
fn decode(text: &[u8], group: EncodedGroup) -> Vec<u8> {
    match group {
        EncodedGroup::Hex => text.as_chunks::<2>().0.iter().map_while(|pair| byte_of_hex(*pair)).collect(),
        EncodedGroup::Base64 => {
            let text = text.get(..text.len() - usize::from(text.len() % 4 == 1)).unwrap_or_default();
            let mut standard = text.to_vec();
            for byte in &mut standard {
                *byte = match *byte {
                    b'-' => b'+',
                    b'_' => b'/',
                    other => other,
                };
            }
            STANDARD_ENGINE.decode(&standard).unwrap_or_default()
        }
    }
}

pub(crate) fn byte_of_hex([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    };
    Some(digit(high)? << 4 | digit(low)?)
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

/// Shorter needles pass the filter too often.
const MIN_NEEDLE: usize = 4;
/// This many bytes after a keyword must be text. All secrets are longer.
const MIN_TEXT: usize = 8;
/// The first letters of a case-insensitive keyword that are searched in every case: three are too short for base64.
const SPELLED: usize = 4;
/// A longer run is an attachment and is redacted only in part.
const WHOLE_RUN: usize = 4096;
const STANDARD_ENGINE: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, NO_PAD.with_decode_allow_trailing_bits(true));
const URL_ENGINE: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD);

#[cfg(test)]
mod tests;
