//! Decides whether a variation selector or joiner belongs where it is.
//!
//! Selectors choose the form of the character before them; joiners connect or separate their neighbours. Both are
//! invisible. Emoji and some scripts need them. Elsewhere, one per letter can encode a message that only programs
//! read.

use std::ops::RangeInclusive;

use super::filler::holds;

pub(super) fn is_selector(character: char) -> bool {
    matches!(character, '\u{fe00}'..='\u{fe0f}')
}

pub(super) fn is_joiner(character: char) -> bool {
    matches!(character, SOFT_HYPHEN | GRAPHEME_JOINER | NON_JOINER | JOINER)
}

/// The text so far, as far as selectors and joiners depend on it.
pub(super) struct PrecedingText {
    last: char,
    /// The last character that is neither a selector nor a joiner.
    seen: char,
    /// The length of the current run of letters.
    letters: usize,
}

impl Default for PrecedingText {
    fn default() -> Self {
        Self { last: ' ', seen: ' ', letters: 0 }
    }
}

impl PrecedingText {
    pub fn read(&mut self, character: char) {
        self.letters = if is_of_a_word(character) { self.letters.saturating_add(1) } else { 0 };
        self.last = character;
        if !is_selector(character) && !is_joiner(character) {
            self.seen = character;
        }
    }

    /// Whether one selector may follow the previous character.
    pub fn is_varied_by(&self, selector: char, rest: &str) -> bool {
        if self.seen != self.last {
            return false;
        }
        match selector {
            '\u{fe0f}' if matches!(self.seen, '0'..='9' | '#' | '*') => rest.starts_with(KEYCAP),
            '\u{fe0e}' | '\u{fe0f}' => is_emoji(self.seen),
            '\u{fe00}' => holds(WITH_A_VARIANT, self.seen),
            '\u{fe01}'..='\u{fe06}' => holds(WITH_VARIANTS, self.seen),
            _ => false,
        }
    }

    /// Whether one joiner may be between the previous and the next character.
    pub fn is_bound_by(&self, joiner: char, rest: &str) -> bool {
        let mut next = rest.chars();
        match joiner {
            // A word is divided only with at least two letters on either side.
            SOFT_HYPHEN => {
                self.letters >= 2 && next.by_ref().take(2).filter(|next| is_of_a_word(*next)).count() == 2
            }
            GRAPHEME_JOINER => holds(HEBREW, self.last),
            JOINER if is_emoji(self.last) || self.last == '\u{fe0f}' && is_emoji(self.seen) => {
                next.next().is_some_and(is_emoji)
            }
            _ => holds(JOINED, self.last),
        }
    }
}

fn is_of_a_word(character: char) -> bool {
    let is_accent = matches!(character, '\u{300}'..='\u{36f}') && character != GRAPHEME_JOINER;
    character.is_alphabetic() || is_accent || holds(JOINED, character)
}

fn is_emoji(character: char) -> bool {
    holds(EMOJI, character)
}

const SOFT_HYPHEN: char = '\u{ad}';
const GRAPHEME_JOINER: char = '\u{34f}';
const NON_JOINER: char = '\u{200c}';
const JOINER: char = '\u{200d}';
const KEYCAP: char = '\u{20e3}';

const HEBREW: &[RangeInclusive<char>] = &['\u{591}'..='\u{5f4}'];

/// Scripts whose letters change form with their neighbours.
const JOINED: &[RangeInclusive<char>] = &[
    // Arabic, Syriac, N'Ko, Mandaic.
    '\u{620}'..='\u{8ff}',
    // From Devanagari to Sinhala.
    '\u{900}'..='\u{dff}',
    // Tibetan, Burmese.
    '\u{f00}'..='\u{109f}',
    // Khmer, Mongolian.
    '\u{1780}'..='\u{18aa}',
    // Balinese and neighbouring blocks, Vedic signs.
    '\u{1b00}'..='\u{1c4f}',
    '\u{1cd0}'..='\u{1cfa}',
    // Phags-pa to Javanese, Burmese again, Meetei.
    '\u{a840}'..='\u{a9ff}',
    '\u{aa60}'..='\u{aaff}',
    '\u{abc0}'..='\u{abff}',
    // Arabic presentation forms.
    '\u{fb50}'..='\u{fdff}',
    '\u{fe70}'..='\u{fefc}',
    // Manichaean and neighbouring blocks, Rohingya, Sogdian, and the other scripts of India.
    '\u{10ac0}'..='\u{10bff}',
    '\u{10d00}'..='\u{10d3f}',
    '\u{10f30}'..='\u{11fff}',
    // Adlam.
    '\u{1e900}'..='\u{1e95f}',
];

/// Characters with one registered variation.
const WITH_A_VARIANT: &[RangeInclusive<char>] = &[
    '\u{1000}'..='\u{109f}',
    '\u{2190}'..='\u{22ff}',
    '\u{2a00}'..='\u{2aff}',
    '\u{3001}'..='\u{3002}',
    '\u{3400}'..='\u{9fff}',
    '\u{a840}'..='\u{a877}',
    '\u{aa60}'..='\u{aa7f}',
    '\u{ff01}'..='\u{ff1f}',
    '\u{10ac0}'..='\u{10aff}',
    '\u{13000}'..='\u{1345f}',
    '\u{20000}'..='\u{3ffff}',
];

/// Hieroglyphs can be rotated.
const WITH_VARIANTS: &[RangeInclusive<char>] = &['\u{13000}'..='\u{1345f}'];

const EMOJI: &[RangeInclusive<char>] = &[
    '©'..='©',
    '®'..='®',
    '\u{203c}'..='\u{203c}',
    '\u{2049}'..='\u{2049}',
    '\u{2122}'..='\u{2122}',
    '\u{2139}'..='\u{2139}',
    '\u{2194}'..='\u{21aa}',
    '\u{231a}'..='\u{23ff}',
    '\u{24c2}'..='\u{24c2}',
    '\u{25aa}'..='\u{25fe}',
    '\u{2600}'..='\u{27bf}',
    '\u{2934}'..='\u{2935}',
    '\u{2b05}'..='\u{2b55}',
    '\u{3030}'..='\u{3030}',
    '\u{303d}'..='\u{303d}',
    '\u{3297}'..='\u{3299}',
    '\u{1f000}'..='\u{1faff}',
];
