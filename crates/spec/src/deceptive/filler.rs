//! Decides whether an invisible filler belongs where it is.
//!
//! Some scripts have such characters: syllable fillers, form selectors, the braille blank. They are legitimate next to
//! a letter of the same script. In a row, or among other letters, they can encode a hidden message.

use std::ops::RangeInclusive;

pub(super) fn is_filler(character: char) -> bool {
    script_of(character).is_some()
}

/// `rest` follows the filler; `before` precedes it.
pub(super) fn belongs(filler: char, before: char, rest: &str) -> bool {
    let Some(script) = script_of(filler) else { return false };
    let shows = |character: char| holds(script.seen, character);
    !is_filler(before) && (shows(before) || rest.chars().next().is_some_and(shows))
}

/// Braille blanks come in rows, because pictures are drawn with them. A row is checked once.
pub(super) fn blanks_belong(before: char, rest: &str) -> bool {
    belongs(BLANK, before, rest.trim_start_matches(BLANK))
}

pub(super) const BLANK: char = '\u{2800}';

struct Script {
    fillers: &'static [RangeInclusive<char>],
    seen: &'static [RangeInclusive<char>],
}

fn script_of(filler: char) -> Option<&'static Script> {
    // Most text is below all these ranges.
    let may_be = filler >= '\u{115f}';
    SCRIPTS.iter().find(|script| may_be && holds(script.fillers, filler))
}

pub(super) fn holds(ranges: &[RangeInclusive<char>], character: char) -> bool {
    ranges.iter().any(|range| range.contains(&character))
}

const SCRIPTS: &[Script] = &[
    HANGUL,
    // Khmer.
    Script { fillers: &['\u{17b4}'..='\u{17b5}'], seen: &['\u{1780}'..='\u{17b3}', '\u{17b6}'..='\u{17dd}'] },
    // Mongolian.
    Script {
        fillers: &['\u{180b}'..='\u{180d}', '\u{180f}'..='\u{180f}'],
        seen: &['\u{1800}'..='\u{180a}', '\u{1810}'..='\u{18aa}'],
    },
    // Braille.
    Script { fillers: &[BLANK..=BLANK], seen: &['\u{2801}'..='\u{28ff}'] },
    // Shorthand.
    Script { fillers: &['\u{1bca0}'..='\u{1bca3}'], seen: &['\u{1bc00}'..='\u{1bc9f}'] },
    // Music.
    Script {
        fillers: &['\u{1d173}'..='\u{1d17a}'],
        seen: &['\u{1d100}'..='\u{1d172}', '\u{1d17b}'..='\u{1d1ea}'],
    },
];

const HANGUL: Script = Script {
    fillers: &['\u{115f}'..='\u{1160}', '\u{3164}'..='\u{3164}', '\u{ffa0}'..='\u{ffa0}'],
    seen: &[
        '\u{1100}'..='\u{115e}',
        '\u{1161}'..='\u{11ff}',
        '\u{3131}'..='\u{3163}',
        '\u{3165}'..='\u{318e}',
        '\u{a960}'..='\u{a97c}',
        '\u{ac00}'..='\u{d7a3}',
        '\u{d7b0}'..='\u{d7fb}',
        '\u{ffa1}'..='\u{ffdc}',
    ],
};
