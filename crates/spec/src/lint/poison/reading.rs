//! Produces the readings of a text: as displayed, folded, joined and decoded. All are lower case.

use std::collections::BTreeSet;

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use super::{
    characters::{is_bidi, is_invisible, is_latin},
    decode,
};

/// One way of reading a text.
#[derive(Debug)]
pub(super) struct Reading {
    /// Lower case, one space between words, line breaks kept, punctuation kept.
    pub flat: String,
    /// Words and digits only, one space between them; a lone `.` where a sentence ends.
    pub words: String,
}

/// The result of one pass over the bytes of a text.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "four independent observations of one pass over the bytes")]
pub(super) struct Hint {
    is_foreign: bool,
    has_escapes: bool,
    has_island: bool,
    has_lone_letters: bool,
    has_digit_letters: bool,
}

impl Hint {
    pub(super) fn of(text: &str) -> Self {
        let mut hint = Self::default();
        let (mut seen, mut word, mut run, mut lone) = (0, 0, 0, 0);
        let mut end_word = |word: usize, is_joined: bool| {
            lone = match word {
                0 => lone,
                1 => lone + 1,
                _ => 0,
            };
            run += word;
            hint.has_lone_letters |= lone >= LEAST_LONE;
            hint.has_island |= run >= LEAST_ISLAND;
            run = if is_joined { run + 1 } else { 0 };
        };
        // Runs and rows of single letters are evaluated at the end of a word, not at every letter.
        for byte in text.bytes() {
            let class = class(byte);
            seen |= class;
            if class & LETTER != 0 {
                word += 1;
            } else {
                end_word(word, class & JOINER != 0);
                word = 0;
            }
        }
        end_word(word, false);
        hint.is_foreign = seen & FOREIGN != 0;
        hint.has_escapes = seen & ESCAPE != 0;
        hint.has_digit_letters = seen & FIGURE != 0 && has_digit_letters(text.as_bytes());
        hint
    }

    /// Whether there is nothing to decode, fold or join: the text is its only reading.
    pub(super) const fn is_plain(self) -> bool {
        !(self.is_foreign
            || self.has_escapes
            || self.has_island
            || self.has_lone_letters
            || self.has_digit_letters)
    }
}

/// All distinct readings of a text; the first is the one a person sees.
pub(super) fn readings(text: &str, hint: Hint) -> Vec<Reading> {
    let seen = normal(text);
    let mut texts = Vec::new();
    if hint.is_foreign {
        texts.push(folded(&seen));
        texts.push(normal(&hidden(text)));
    }
    if hint.has_escapes {
        texts.extend(decode::escapes(text).map(|decoded| folded(&normal(&decoded))));
    }
    if hint.has_island {
        texts.extend(decode::encoded_parts(text).iter().map(|decoded| folded(&normal(decoded))));
    }
    if hint.has_digit_letters || hint.is_foreign {
        texts.push(digits_as_letters(&folded(&seen)));
    }
    if hint.has_lone_letters || hint.is_foreign {
        texts.push(folded(&normal(&joined(text))));
    }
    let separated: Vec<String> = texts
        .iter()
        .chain([&seen])
        .flat_map(|flat| [spaced(flat), without_full_stops(flat)])
        .flatten()
        .collect();
    texts.extend(separated);
    texts.sort_unstable();
    texts.dedup();
    texts.retain(|other| !other.is_empty() && *other != seen);
    std::iter::once(seen).chain(texts).map(|flat| Reading { words: words(&flat), flat }).collect()
}

/// The ASCII letter that a character of another script resembles.
pub(super) fn lookalike(character: char) -> Option<char> {
    LOOKALIKES
        .binary_search_by_key(&character, |(from, _)| *from)
        .ok()
        .and_then(|at| LOOKALIKES.get(at))
        .map(|(_, to)| *to)
}

/// Resolves compatibility forms, removes invisible characters and accents of Latin letters, converts to lower case,
/// and collapses white space.
fn normal(text: &str) -> String {
    let mut flat = String::with_capacity(text.len());
    if text.is_ascii() {
        let mut last = b'x';
        for byte in text.bytes() {
            if byte.is_ascii_graphic() || matches!(byte, b' ' if !matches!(last, b' ' | b'\n')) {
                flat.push(char::from(byte.to_ascii_lowercase()));
                last = byte;
            } else if byte.is_ascii_whitespace() {
                push(&mut flat, char::from(byte));
                last = flat.bytes().next_back().unwrap_or(b'x');
            }
        }
        return flat;
    }
    let visible = text.chars().filter(|c| !is_invisible(*c) && !is_bidi(*c));
    for character in visible.nfkc().flat_map(char::to_lowercase) {
        let character = if character.is_ascii() || !is_latin(character) {
            character
        } else {
            std::iter::once(character).nfd().next().unwrap_or(character)
        };
        push(&mut flat, character);
    }
    flat
}

/// Keeps visible characters and collapses white space. A gap with a line break becomes a line break.
fn push(flat: &mut String, character: char) {
    if character == '\n' {
        flat.truncate(flat.trim_end_matches(' ').len());
        if !flat.ends_with('\n') {
            flat.push('\n');
        }
    } else if character.is_whitespace() {
        if !flat.ends_with([' ', '\n']) {
            flat.push(' ');
        }
    } else if !character.is_control() && !matches!(character, '\u{300}'..='\u{36f}') {
        flat.push(character);
    }
}

/// Replaces look-alike letters by the letters they resemble.
fn folded(flat: &str) -> String {
    flat.chars().map(|character| lookalike(character).unwrap_or(character)).collect()
}

/// The forms that a person may confuse a name with. Two names with a common form look the same.
pub fn name_looks(name: &str) -> BTreeSet<String> {
    [name_skeleton(name), name_skeleton(&unify_strokes(name))].into()
}

/// Maps `I`, `1` and `|` to `l`, which many fonts draw the same, and `0` to `o`. The skeleton cannot do this, because
/// it ignores case and `mail` is not `mall`. In a name of capitals only, an `I` is unambiguous.
fn unify_strokes(name: &str) -> String {
    let has_small = name.chars().any(char::is_lowercase);
    let plain = |character: char| match std::iter::once(character).nfkc().next() {
        Some('1' | '|') => 'l',
        Some('I' | '\u{399}' | '\u{406}') if has_small => 'l',
        Some('0') => 'o',
        _ => character,
    };
    name.chars().map(plain).collect()
}

/// Ignores case, accents, look-alike letters and dashes, wide and styled forms, and invisible characters.
fn name_skeleton(name: &str) -> String {
    // Look-alikes are replaced before lower-casing too: the small letters of some capitals do not look alike.
    let skeleton = folded(&normal(&folded(name)));
    let skeleton: String = skeleton.trim().chars().map(plain_dash).collect();
    // In scripts that write vowels as marks, marks distinguish words. On ASCII letters they are decoration.
    let bare: String = skeleton.chars().filter(|character| !is_combining_mark(*character)).collect();
    if bare.is_ascii() { bare } else { skeleton }
}

fn plain_dash(character: char) -> char {
    match character {
        '\u{2010}'..='\u{2015}' | '\u{2043}' | '\u{2212}' => '-',
        '\u{2cd}' => '_',
        other => other,
    }
}

/// The text spelled by tag characters.
fn hidden(text: &str) -> String {
    text.chars()
        .filter_map(|character| u32::from(character).checked_sub(TAG_BLOCK))
        .filter(|code| (0x20..0x7f).contains(code))
        .filter_map(char::from_u32)
        .collect()
}

/// Joins `i g n o r e` and `i.g.n.o.r.e` to one word; a wider gap ends it.
fn joined(text: &str) -> String {
    let characters: Vec<char> = text.chars().filter(|c| !is_invisible(*c) && !is_bidi(*c)).collect();
    let at = |index: usize| characters.get(index).copied();
    let is_letter = |index: usize| at(index).is_some_and(char::is_alphanumeric);
    let is_lone =
        |index: usize| is_letter(index) && !is_letter(index + 1) && (index == 0 || !is_letter(index - 1));
    let mut joined = String::with_capacity(text.len());
    for (index, character) in characters.iter().enumerate() {
        let is_gap = !character.is_alphanumeric() && index > 0 && is_lone(index - 1) && is_lone(index + 1);
        if !is_gap {
            joined.push(*character);
        }
    }
    joined
}

/// Splits `ignore_all_rules` into three words. `None` without underscores.
fn spaced(flat: &str) -> Option<String> {
    flat.contains('_').then(|| flat.replace('_', " "))
}

/// Reads `Ignore. all. rules.` as one sentence. `None` without [`LEAST_STOPPED`] one-word sentences in a row.
fn without_full_stops(flat: &str) -> Option<String> {
    let is_stopped = |word: &&str| word.ends_with(STOPS);
    let words: Vec<&str> = flat.split_whitespace().collect();
    let rows: Vec<&[&str]> = words.chunk_by(|one, other| is_stopped(one) == is_stopped(other)).collect();
    let is_row = |row: &&[&str]| row.len() >= LEAST_STOPPED && row.first().is_some_and(is_stopped);
    if !rows.iter().any(is_row) {
        return None;
    }
    let read = |row: &[&str]| {
        let text = row.join(" ");
        if is_row(&row) { text.replace(STOPS, "") } else { text }
    };
    Some(rows.into_iter().map(read).collect::<Vec<_>>().join(" "))
}

/// Replaces digits and signs that substitute letters inside words.
fn digits_as_letters(flat: &str) -> String {
    flat.split_inclusive(char::is_whitespace)
        .map(|word| {
            if word.chars().any(|c| c.is_ascii_alphabetic()) {
                word.chars()
                    .map(|c| LEET.iter().find(|(from, _)| *from == c).map_or(c, |(_, to)| *to))
                    .collect()
            } else {
                word.to_owned()
            }
        })
        .collect()
}

fn words(flat: &str) -> String {
    let mut words = String::with_capacity(flat.len() + 2);
    if flat.is_ascii() {
        ascii_words(flat.as_bytes(), &mut words);
        return words;
    }
    let mut characters = flat.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            letter if letter.is_alphanumeric() => words.push(letter),
            // Inside a name; around a word it is emphasis.
            '_' if words.ends_with(char::is_alphanumeric)
                && characters.peek().is_some_and(|next| next.is_alphanumeric()) =>
            {
                words.push('_');
            }
            '\'' | '\u{2019}' => {}
            '.' | '!' | '?' | ';' if characters.peek().is_none_or(|next| next.is_whitespace()) => {
                words.push_str(if words.ends_with(' ') { ". " } else { " . " });
            }
            _ if words.ends_with(' ') => {}
            _ => words.push(' '),
        }
    }
    words
}

/// A fast path of `words` for ASCII text.
fn ascii_words(flat: &[u8], words: &mut String) {
    let mut last = 0;
    for (at, byte) in flat.iter().enumerate() {
        let next = flat.get(at + 1).copied();
        let push = |words: &mut String, byte: u8| {
            words.push(char::from(byte));
            byte
        };
        last = match *byte {
            letter if letter.is_ascii_alphanumeric() => push(words, letter),
            b'_' if last.is_ascii_alphanumeric() && next.is_some_and(|next| next.is_ascii_alphanumeric()) => {
                push(words, b'_')
            }
            b'\'' => last,
            b'.' | b'!' | b'?' | b';' if next.is_none_or(|next| next.is_ascii_whitespace()) => {
                words.push_str(if last == b' ' { ". " } else { " . " });
                b' '
            }
            _ if last == b' ' => last,
            _ => push(words, b' '),
        };
    }
}

fn has_digit_letters(bytes: &[u8]) -> bool {
    bytes.array_windows().any(|[before, here]| class(*before) & FIGURE != 0 && here.is_ascii_alphabetic())
}

fn class(byte: u8) -> u8 {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(FOREIGN)
}

const FOREIGN: u8 = 1;
const ESCAPE: u8 = 2;
const LETTER: u8 = 4;
/// Substitutes a letter in disguised words.
const FIGURE: u8 = 8;
/// Continues a run of encoded text.
const JOINER: u8 = 16;

#[expect(clippy::indexing_slicing, reason = "the table has an entry for every byte")]
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    loop {
        classes[byte as usize] = match byte {
            b'0'..=b'9' => LETTER | FIGURE,
            b'@' | b'$' => FIGURE,
            b'a'..=b'z' | b'A'..=b'Z' => LETTER,
            b'&' | b'%' | b'\\' => ESCAPE,
            b'+' | b'/' | b'_' | b'-' => JOINER,
            b'\n' | b'\t' => 0,
            0x7f.. | 0..0x20 => FOREIGN,
            _ => 0,
        };
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

/// Characters that end a sentence.
const STOPS: [char; 4] = ['.', '!', '?', ';'];
const LEAST_STOPPED: usize = 3;
const LEAST_LONE: usize = 4;
const LEAST_ISLAND: usize = 24;
const TAG_BLOCK: u32 = 0xe0000;

const LEET: [(char, char); 8] =
    [('0', 'o'), ('1', 'i'), ('3', 'e'), ('4', 'a'), ('5', 's'), ('7', 't'), ('@', 'a'), ('$', 's')];

/// Sorted by the first of each pair. Includes capitals, because names are folded before lower-casing.
#[rustfmt::skip]
const LOOKALIKES: &[(char, char)] = &[
    ('\u{131}', 'i'), ('\u{237}', 'j'), ('\u{251}', 'a'), ('\u{261}', 'g'), ('\u{262}', 'g'),
    ('\u{269}', 'i'), ('\u{26a}', 'i'), ('\u{274}', 'n'), ('\u{280}', 'r'), ('\u{28f}', 'y'),
    ('\u{299}', 'b'), ('\u{29c}', 'h'), ('\u{29f}', 'l'), ('\u{391}', 'a'), ('\u{392}', 'b'),
    ('\u{395}', 'e'), ('\u{396}', 'z'), ('\u{397}', 'h'), ('\u{399}', 'i'), ('\u{39a}', 'k'),
    ('\u{39c}', 'm'), ('\u{39d}', 'n'), ('\u{39f}', 'o'), ('\u{3a1}', 'p'), ('\u{3a4}', 't'),
    ('\u{3a5}', 'y'), ('\u{3a7}', 'x'), ('\u{3b1}', 'a'), ('\u{3b5}', 'e'),
    ('\u{3b9}', 'i'), ('\u{3ba}', 'k'), ('\u{3bd}', 'v'), ('\u{3bf}', 'o'),
    ('\u{3c1}', 'p'), ('\u{3c5}', 'u'), ('\u{3c7}', 'x'),
    ('\u{3f2}', 'c'), ('\u{3f3}', 'j'), ('\u{3f9}', 'c'), ('\u{401}', 'e'), ('\u{405}', 's'),
    ('\u{406}', 'i'), ('\u{407}', 'i'), ('\u{408}', 'j'), ('\u{410}', 'a'), ('\u{412}', 'b'),
    ('\u{415}', 'e'), ('\u{41a}', 'k'), ('\u{41c}', 'm'), ('\u{41d}', 'h'), ('\u{41e}', 'o'),
    ('\u{420}', 'p'), ('\u{421}', 'c'), ('\u{422}', 't'), ('\u{423}', 'y'), ('\u{425}', 'x'),
    ('\u{430}', 'a'), ('\u{432}', 'b'), ('\u{433}', 'r'), ('\u{435}', 'e'), ('\u{43a}', 'k'),
    ('\u{43c}', 'm'), ('\u{43d}', 'h'), ('\u{43e}', 'o'), ('\u{43f}', 'n'), ('\u{440}', 'p'),
    ('\u{441}', 'c'), ('\u{442}', 't'), ('\u{443}', 'y'), ('\u{445}', 'x'), ('\u{44c}', 'b'),
    ('\u{451}', 'e'), ('\u{455}', 's'), ('\u{456}', 'i'), ('\u{457}', 'i'), ('\u{458}', 'j'),
    ('\u{475}', 'v'), ('\u{4ba}', 'h'), ('\u{4bb}', 'h'), ('\u{4cf}', 'l'), ('\u{4d5}', 'a'),
    ('\u{501}', 'd'), ('\u{51a}', 'q'), ('\u{51b}', 'q'), ('\u{51c}', 'w'), ('\u{51d}', 'w'),
    ('\u{53c}', 'l'), ('\u{54d}', 'u'), ('\u{54f}', 's'), ('\u{555}', 'o'), ('\u{561}', 'w'),
    ('\u{566}', 'q'), ('\u{570}', 'h'), ('\u{578}', 'n'), ('\u{57d}', 'u'), ('\u{581}', 'g'),
    ('\u{584}', 'p'), ('\u{585}', 'o'), ('\u{13a0}', 'd'), ('\u{13a1}', 'r'), ('\u{13a2}', 'i'),
    ('\u{13a5}', 'i'), ('\u{13a9}', 'y'), ('\u{13aa}', 'a'), ('\u{13ab}', 'j'), ('\u{13ac}', 'e'),
    ('\u{13b3}', 'w'), ('\u{13b7}', 'm'), ('\u{13bb}', 'h'), ('\u{13bd}', 'y'), ('\u{13c0}', 'g'),
    ('\u{13c2}', 'i'), ('\u{13c3}', 'z'), ('\u{13c6}', 'i'), ('\u{13d2}', 'r'), ('\u{13d4}', 'w'),
    ('\u{13d5}', 's'), ('\u{13d9}', 'v'), ('\u{13da}', 's'), ('\u{13de}', 'l'), ('\u{13df}', 'c'),
    ('\u{13e2}', 'p'), ('\u{13e6}', 'k'), ('\u{13e7}', 'd'), ('\u{13e9}', 'g'), ('\u{13f3}', 't'),
    ('\u{13f4}', 'b'), ('\u{1d00}', 'a'), ('\u{1d04}', 'c'), ('\u{1d05}', 'd'), ('\u{1d07}', 'e'),
    ('\u{1d0a}', 'j'), ('\u{1d0b}', 'k'), ('\u{1d0d}', 'm'), ('\u{1d0f}', 'o'), ('\u{1d18}', 'p'),
    ('\u{1d1b}', 't'), ('\u{1d1c}', 'u'), ('\u{1d20}', 'v'), ('\u{1d21}', 'w'), ('\u{1d22}', 'z'),
    ('\u{2113}', 'l'), ('\u{217c}', 'l'), ('\u{a730}', 'f'), ('\u{a731}', 's'), ('\u{1f150}', 'a'),
    ('\u{1f151}', 'b'), ('\u{1f152}', 'c'), ('\u{1f153}', 'd'), ('\u{1f154}', 'e'), ('\u{1f155}', 'f'),
    ('\u{1f156}', 'g'), ('\u{1f157}', 'h'), ('\u{1f158}', 'i'), ('\u{1f159}', 'j'), ('\u{1f15a}', 'k'),
    ('\u{1f15b}', 'l'), ('\u{1f15c}', 'm'), ('\u{1f15d}', 'n'), ('\u{1f15e}', 'o'), ('\u{1f15f}', 'p'),
    ('\u{1f160}', 'q'), ('\u{1f161}', 'r'), ('\u{1f162}', 's'), ('\u{1f163}', 't'), ('\u{1f164}', 'u'),
    ('\u{1f165}', 'v'), ('\u{1f166}', 'w'), ('\u{1f167}', 'x'), ('\u{1f168}', 'y'), ('\u{1f169}', 'z'),
    ('\u{1f170}', 'a'), ('\u{1f171}', 'b'), ('\u{1f172}', 'c'), ('\u{1f173}', 'd'), ('\u{1f174}', 'e'),
    ('\u{1f175}', 'f'), ('\u{1f176}', 'g'), ('\u{1f177}', 'h'), ('\u{1f178}', 'i'), ('\u{1f179}', 'j'),
    ('\u{1f17a}', 'k'), ('\u{1f17b}', 'l'), ('\u{1f17c}', 'm'), ('\u{1f17d}', 'n'), ('\u{1f17e}', 'o'),
    ('\u{1f17f}', 'p'), ('\u{1f180}', 'q'), ('\u{1f181}', 'r'), ('\u{1f182}', 's'), ('\u{1f183}', 't'),
    ('\u{1f184}', 'u'), ('\u{1f185}', 'v'), ('\u{1f186}', 'w'), ('\u{1f187}', 'x'), ('\u{1f188}', 'y'),
    ('\u{1f189}', 'z'), ('\u{1f1e6}', 'a'), ('\u{1f1e7}', 'b'), ('\u{1f1e8}', 'c'), ('\u{1f1e9}', 'd'),
    ('\u{1f1ea}', 'e'), ('\u{1f1eb}', 'f'), ('\u{1f1ec}', 'g'), ('\u{1f1ed}', 'h'), ('\u{1f1ee}', 'i'),
    ('\u{1f1ef}', 'j'), ('\u{1f1f0}', 'k'), ('\u{1f1f1}', 'l'), ('\u{1f1f2}', 'm'), ('\u{1f1f3}', 'n'),
    ('\u{1f1f4}', 'o'), ('\u{1f1f5}', 'p'), ('\u{1f1f6}', 'q'), ('\u{1f1f7}', 'r'), ('\u{1f1f8}', 's'),
    ('\u{1f1f9}', 't'), ('\u{1f1fa}', 'u'), ('\u{1f1fb}', 'v'), ('\u{1f1fc}', 'w'), ('\u{1f1fd}', 'x'),
    ('\u{1f1fe}', 'y'), ('\u{1f1ff}', 'z'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        let words: Vec<String> = readings(text, Hint::of(text))
            .into_iter()
            .map(|reading| reading.words.trim().to_owned())
            .collect();
        assert_eq!(words, expect, "{text:?}");
    }

    proptest::proptest! {
        #[test]
        fn fast_path_yields_the_same_words(flat in "[a-c0 _.'!?;,\n-]{0,30}") {
            let mut short = String::new();
            ascii_words(flat.as_bytes(), &mut short);
            // A non-ASCII letter forces the slow path for the same text.
            let long = words(&format!("{flat}\u{e9}"));
            let same_end = words(&format!("{flat}x"));
            proptest::prop_assert_eq!(long.trim_end_matches('\u{e9}'), same_end.trim_end_matches('x'));
            proptest::prop_assert_eq!(words(&flat), short);
        }
    }

    #[test]
    fn look_alike_names_share_a_skeleton() {
        for name in [
            "Pay-me",
            " pay-me ",
            "p\u{430}y-me",
            "pay\u{200b}-me",
            "\u{202e}pay-me",
            "\u{ff50}\u{ff41}\u{ff59}-me",
            "\u{1d4f9}ay-me",
            "p\u{e1}y-me",
            "pa\u{20dd}y-me",
            "pay\u{2010}me",
            "pay\u{2212}m\u{13ac}",
        ] {
            assert_eq!(name_skeleton(name), "pay-me", "{name:?}");
        }
    }

    #[test]
    fn visibly_different_names_have_different_skeletons() {
        for (one, other) in [
            ("read", "reads"),
            ("read_file", "read-file"),
            ("read_file", "readfile"),
            ("\u{915}\u{93f}", "\u{915}\u{940}"),
            ("\u{c77d}\u{ae30}", "\u{c4f0}\u{ae30}"),
        ] {
            assert_ne!(name_skeleton(one), name_skeleton(other));
        }
    }

    #[test]
    fn font_dependent_names_share_a_form() {
        for (one, other) in [
            ("read_file", "read_fiIe"),
            ("read_file", "read_fi1e"),
            ("read_file", "Read_fi|e"),
            ("read_file", "READ_FI1E"),
            ("read_file", "r\u{435}ad_fiI\u{435}"),
            ("read_file", "read_fi\u{406}e"),
            ("read_file", "read_fi\u{ff29}e"),
            ("READ_FILE", "read_fiIe"),
            ("slugify", "s1ugify"),
            ("tool", "t0ol"),
            ("v1", "vl"),
            ("sha1", "shaI"),
        ] {
            assert!(!name_looks(one).is_disjoint(&name_looks(other)), "{one} {other}");
        }
    }

    #[test]
    fn readable_names_share_no_form() {
        for (one, other) in [
            ("mail", "mall"),
            ("Mail", "Mall"),
            ("MAIL", "MALL"),
            ("GET_ID", "get_ld"),
            ("v1", "v2"),
            ("v1", "vi"),
            ("step_1", "step_10"),
            ("sha1", "sha256"),
            ("base32", "base64"),
            ("getItem", "getltems"),
        ] {
            assert!(name_looks(one).is_disjoint(&name_looks(other)), "{one} {other}");
        }
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(LOOKALIKES.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn plain_text_has_one_reading() {
        for text in ["Adds two numbers. Returns {sum}.", "a b: see utf-8, don't", ""] {
            assert!(Hint::of(text).is_plain(), "{text}");
        }
        check("Adds two numbers.", &["adds two numbers ."]);
        check("don't\n  stop", &["dont stop"]);
    }

    #[test]
    fn disguises_add_readings() {
        check("g\u{43e} n\u{43e}w", &["g\u{43e} n\u{43e}w", "go now"]);
        check("x\u{e0068}\u{e0069}", &["x", "hi"]);
        check("s t o p it", &["s t o p it", "stop it"]);
        check("st0p", &["st0p", "stop"]);
        check("&#104;i", &["104 i", "hi"]);
        check("stop_it_now", &["stop_it_now", "stop it now"]);
        check("Stop. it. now. Or later.", &["stop . it . now . or later .", "stop it now or later ."]);
        check("Stop. it now.", &["stop . it now ."]);
    }
}
