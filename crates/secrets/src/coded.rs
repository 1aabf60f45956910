//! Where is a text in base64 or hex, and what does it say?

use std::{collections::BTreeSet, ops::Range};

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{GeneralPurpose, general_purpose::NO_PAD},
};

use crate::{
    literals::{Coding, Meaning, Needle},
    rule::Case,
};

/// What an encoded word decodes to.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Keyword {
    pub text: Box<[u8]>,
    pub case: Case,
}

/// A run of encoded text and how it is cut into groups.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Run {
    pub span: Range<usize>,
    /// Where the first whole group begins.
    pub from: usize,
    pub coding: Group,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Group {
    Base64,
    Hex,
}

impl Keyword {
    /// How it may begin. An encoding hides that two letters differ in nothing but case, so that a word in any case is
    /// searched for by its first letters, in every spelling that those may have.
    pub(crate) fn beginnings(&self) -> Vec<Vec<u8>> {
        match self.case {
            Case::Exact => vec![self.text.to_vec()],
            Case::Ignored => self.text.iter().take(SPELLED).fold(vec![Vec::new()], |beginnings, letter| {
                let cases = BTreeSet::from([letter.to_ascii_lowercase(), letter.to_ascii_uppercase()]);
                let longer = |beginning: &Vec<u8>, case| beginning.iter().copied().chain([case]).collect();
                cases.iter().flat_map(|case| beginnings.iter().map(|one| longer(one, *case))).collect()
            }),
        }
    }

    /// What follows it in a text that begins with it.
    fn strip<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        let (beginning, rest) = text.split_at_checked(self.text.len())?;
        let is_it = match self.case {
            Case::Exact => *beginning == *self.text,
            Case::Ignored => beginning.eq_ignore_ascii_case(&self.text),
        };
        is_it.then_some(rest)
    }
}

/// What to look for so that the keyword with this index, which begins so, is found in hex.
pub(crate) fn hex_needle(beginning: &[u8], at: usize) -> Needle {
    let meaning = Meaning::Coded { coding: Coding::Hex, keyword: at };
    Needle { text: hex(beginning).into(), folds_case: true, meaning }
}

/// What to look for so that the keyword with this index, which begins so, is found in base64, whatever stands before it.
pub(crate) fn base64_needles(beginning: &[u8], at: usize) -> Vec<Needle> {
    let needle = |offset, text: Vec<u8>| {
        let meaning = Meaning::Coded { coding: Coding::Base64 { offset }, keyword: at };
        Needle { text: text.into(), folds_case: false, meaning }
    };
    let texts = |offset| fixed_base64(beginning, offset).into_iter().map(move |text| needle(offset, text));
    (0..3).flat_map(texts).collect()
}

/// The characters of base64 that `keyword` alone decides, `offset` bytes into a group, in each alphabet.
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

/// The run around a hit, if the whole keyword is in it.
pub(crate) fn run(hay: &[u8], at: usize, coding: Coding, keyword: &Keyword) -> Option<Run> {
    let (group, width, from, skip) = match coding {
        Coding::Base64 { offset } => (Group::Base64, 4, at.checked_sub((offset * 8).div_ceil(6))?, offset),
        Coding::Hex => (Group::Hex, 2, at, 0),
    };
    let groups = match group {
        Group::Base64 => (skip + keyword.text.len() + MIN_TEXT).div_ceil(3),
        Group::Hex => keyword.text.len() + MIN_TEXT,
    };
    let beginning = decode(hay.get(from..from + groups * width)?, group);
    let follows = keyword.strip(beginning.get(skip..)?)?;
    // In the bytes of an image three or four of a keyword turn up by chance; text after them does not.
    if follows.is_empty() || !follows.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
    {
        return None;
    }
    let belongs = |byte: &u8| match group {
        Group::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_'),
        Group::Hex => byte.is_ascii_hexdigit(),
    };
    let before = hay.get(..from)?.iter().rev().take_while(|byte| belongs(byte)).count();
    let after = hay.get(from..)?.iter().take_while(|byte| belongs(byte)).count();
    let span = from - before..from + after;
    Some(Run { from: span.start + before % width, span, coding: group })
}

impl Run {
    pub(crate) fn decoded(&self, hay: &[u8]) -> Vec<u8> {
        decode(hay.get(self.from..self.span.end).unwrap_or_default(), self.coding)
    }

    /// What to cover for a secret at `decoded`: a short run as a whole, of a long one the groups that spell it.
    pub(crate) fn covering(&self, hay: &[u8], decoded: &Range<usize>) -> Range<usize> {
        let padding =
            hay.get(self.span.end..).unwrap_or_default().iter().take(2).take_while(|byte| **byte == b'=');
        let end = self.span.end + padding.count();
        if self.span.len() <= WHOLE_RUN {
            return self.span.start..end;
        }
        let (bytes, characters) = match self.coding {
            Group::Base64 => (3, 4),
            Group::Hex => (1, 2),
        };
        let from = self.from + decoded.start / bytes * characters;
        let until = self.from + decoded.end.div_ceil(bytes) * characters;
        from..until.min(end)
    }
}

/// As much as can be decoded; what cannot is left out at the end.
fn decode(text: &[u8], group: Group) -> Vec<u8> {
    match group {
        Group::Hex => text.as_chunks::<2>().0.iter().map_while(|pair| byte_of_hex(*pair)).collect(),
        Group::Base64 => {
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

/// So much of what follows a keyword must be text. No secret is shorter.
const MIN_TEXT: usize = 8;
/// So many letters of a word in any case are spelled out: what base64 makes of three is too little to search for.
const SPELLED: usize = 4;
/// A run that is longer is an attachment, and is not taken out as a whole.
const WHOLE_RUN: usize = 4096;
const STANDARD_ENGINE: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, NO_PAD.with_decode_allow_trailing_bits(true));
const URL_ENGINE: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD);

#[cfg(test)]
mod tests;
