//! Detects characters that make a reader see something else than the text contains.

mod binder;
mod filler;

use std::{borrow::Cow, fmt::Write as _};

use self::{
    binder::{PrecedingText, is_joiner, is_selector},
    filler::BLANK,
};

/// Whether the character is a control, a bidirectional override or invisible. Texts that people decide by show these
/// as code points or are rejected.
pub fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Makes text of a tool safe for a model or a terminal. Characters that move the cursor, reorder text or carry hidden
/// text become code points. Line breaks, tabs, emoji and the characters that scripts need stay.
pub fn neutral(text: &str) -> Cow<'_, str> {
    // All these characters are outside printable ASCII.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t');
    let mut after_returns = text.split('\r').skip(1);
    if text.bytes().all(is_plain) && after_returns.all(|rest| rest.starts_with('\n')) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut place = TextContext::default();
    for (at, character) in text.char_indices() {
        let rest = text.get(at + character.len_utf8()..).unwrap_or_default();
        if place.hides(character, rest) || acts_on_its_neighbours(character) {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
        place.read(character);
    }
    if shown == text { Cow::Borrowed(text) } else { Cow::Owned(shown) }
}

/// The context before a character.
struct TextContext {
    before: char,
    binders: PrecedingText,
    /// Whether the blanks just before belong to a braille picture.
    blanks_belong: bool,
}

impl Default for TextContext {
    fn default() -> Self {
        Self { before: ' ', binders: PrecedingText::default(), blanks_belong: false }
    }
}

impl TextContext {
    fn read(&mut self, character: char) {
        self.before = character;
        self.binders.read(character);
    }

    /// Whether the character is invisible here, or hides others.
    fn hides(&mut self, character: char, rest: &str) -> bool {
        let before = self.before;
        if character == BLANK {
            if before != BLANK {
                self.blanks_belong = filler::blanks_belong(before, rest);
            }
            return !self.blanks_belong;
        }
        if filler::is_filler(character) {
            return !filler::belongs(character, before, rest);
        }
        if is_selector(character) {
            return !self.binders.is_varied_by(character, rest);
        }
        if is_joiner(character) {
            return !self.binders.is_bound_by(character, rest);
        }
        // A lone carriage return moves to the start of the line; the following text overwrites the line.
        character == '\r' && !rest.starts_with('\n')
    }
}

fn acts_on_its_neighbours(character: char) -> bool {
    let is_layout = matches!(character, '\n' | '\r' | '\t');
    !is_layout
        && (character.is_control()
            || matches!(character,
                '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(neutral(text), expect);
    }

    #[test]
    fn control_and_bidi_characters_become_code_points() {
        check("\u{1b}[31mred\u{1b}[0m", "\\u{1b}[31mred\\u{1b}[0m");
        check("a\u{202e}b\u{2066}c", "a\\u{202e}b\\u{2066}c");
        check("bell\u{7} back\u{8} c1\u{9b}31m nul\0", "bell\\u{7} back\\u{8} c1\\u{9b}31m nul\\u{0}");
        check("tag\u{e0041}\u{e0042}", "tag\\u{e0041}\\u{e0042}");
        check("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}");
        check("❤\u{fe0f}\u{fe0e}\u{fe0f}", "❤\u{fe0f}\\u{fe0e}\\u{fe0f}");
    }

    #[test]
    fn lone_carriage_return_is_escaped() {
        check("rm -rf /\rls", "rm -rf /\\u{d}ls");
        check("a\r\r\nb\r", "a\\u{d}\r\nb\\u{d}");
        check("ä\rb\r\n", "ä\\u{d}b\r\n");
    }

    #[test]
    fn row_of_joiners_is_escaped() {
        check("ی\u{200d}\u{200c}\u{200c}\u{200d}ی", "ی\u{200d}\\u{200c}\\u{200c}\\u{200d}ی");
        check("auto\u{ad}\u{ad}\u{34f}bahn", "auto\\u{ad}\\u{ad}\\u{34f}bahn");
        check("👨\u{200d}\u{fe0f}👩", "👨\\u{200d}\\u{fe0f}👩");
        check("❤\u{fe0f}\u{200d}\u{200d}🔥", "❤\u{fe0f}\\u{200d}\\u{200d}🔥");
    }

    /// One invisible character per letter encodes a message: sixteen selectors carry four bits each, four joiners
    /// two.
    #[test]
    fn one_invisible_character_per_letter_is_escaped() {
        let selectors = (0xfe00..=0xfe0f_u32).filter_map(char::from_u32);
        for unseen in selectors.chain(['\u{ad}', '\u{34f}', '\u{200c}', '\u{200d}']) {
            let number = format!("\\u{{{:x}}}", u32::from(unseen));
            for text in ["Summary", "сводка", "σύνοψη", "1 + 2", "a b"] {
                let hidden: String = text.chars().flat_map(|letter| [letter, unseen]).collect();
                let shown =
                    text.chars().fold(String::new(), |shown, letter| shown + &format!("{letter}{number}"));
                check(&hidden, &shown);
            }
        }
    }

    #[test]
    fn emoji_and_script_joiners_stay() {
        check("x\u{200d}🔥", "x\\u{200d}🔥");
        check("🔥\u{200d}x", "🔥\\u{200d}x");
        check("🔥\u{200c}🔥", "🔥\\u{200c}🔥");
        check("x\u{fe0f}\u{200d}🔥", "x\\u{fe0f}\\u{200d}🔥");
        check("🔥\u{fe00}", "🔥\\u{fe00}");
        check("1\u{fe0f}2", "1\\u{fe0f}2");
        check("語\u{fe00}語\u{fe01}", "語\u{fe00}語\\u{fe01}");
        check("א\u{34f}x\u{34f}", "א\u{34f}x\\u{34f}");
        check("a\u{ad}bc, ab\u{ad}c, ab\u{ad} cd", "a\\u{ad}bc, ab\\u{ad}c, ab\\u{ad} cd");
        check("\u{fe0f}\u{200d}\u{ad}", "\\u{fe0f}\\u{200d}\\u{ad}");
    }

    /// Every deceptive character is shown as a code point among unrelated letters.
    #[test]
    fn deceptive_characters_among_other_letters_are_escaped() {
        let stays = |one: char| matches!(one, '\n' | '\t');
        for one in (0..=u32::from(char::MAX)).filter_map(char::from_u32).filter(|one| is_deceptive(*one)) {
            let shown = format!("a\\u{{{:x}}}b", u32::from(one));
            let text = format!("a{one}b");
            check(&text, if stays(one) { &text } else { &shown });
        }
    }

    #[test]
    fn invisible_alphabet_is_escaped() {
        check("note\u{1d173}\u{1d17a}\u{1d174}", "note\\u{1d173}\\u{1d17a}\\u{1d174}");
        check("\u{3164}", "\\u{3164}");
        check("한\u{3164}\u{ffa0}글", "한\u{3164}\\u{ffa0}글");
        check("ᠠ\u{180b}\u{180c}\u{180d}", "ᠠ\u{180b}\\u{180c}\\u{180d}");
        check("ok \u{2800}\u{2800} \u{2800}", "ok \\u{2800}\\u{2800} \\u{2800}");
        check("⣿\u{2800} \u{2800}\u{2800} ", "⣿\u{2800} \\u{2800}\\u{2800} ");
    }

    /// With a search for the end of the row at each blank, this would take hours.
    #[test]
    fn long_row_of_blanks_is_checked_in_linear_time() {
        let row = "\u{2800}".repeat(1 << 20);
        check(&format!("{row}⣿"), &format!("{row}⣿"));
        check(&row, &"\\u{2800}".repeat(1 << 20));
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        for text in [
            "",
            "line\none\ttab\r\n",
            "größe, 大きさ, حجم",
            "👨\u{200d}👩\u{200d}👧 ❤\u{fe0f}",
            "👨\u{200d}👩\u{200d}👧\u{200d}👦 ❤\u{fe0f}\u{200d}🔥 👁\u{fe0f}\u{200d}🗨\u{fe0f}",
            "one\r\ntwo\r\n",
            "Donau\u{ad}dampf\u{ad}schiff",
            "Silben\u{ad}tren\u{ad}nung, пе\u{ad}ре\u{ad}нос",
            // Persian, Kurdish, and a letter of Arabic in its first form.
            "می\u{200c}خواهم, کتاب\u{200c}ها",
            "ئه\u{200c}مه, ه\u{200d} 1447",
            // Hindi, Marathi, Bengali, Kannada, Malayalam, Sinhala, Tamil.
            "क्\u{200d}ष, राष्\u{200c}ट्र, दर्\u{200d}या, র\u{200c}্যাব, ರ್\u{200d}ಯಾಂಕ್, അവന്\u{200d}, ශ්\u{200d}රී ලංකා, க்\u{200c}ஷ",
            // Khmer, Mongolian, Burmese.
            "ប៉\u{200c}, ᠠ\u{200d} ᠨ\u{180b}\u{200d}, က\u{fe00}",
            "יְרוּשָׁלַ\u{34f}ִם",
            "≨\u{fe00} ∩\u{fe00} 、\u{fe00} 𓀀\u{fe01}",
            "1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3} ©\u{fe0f} ™\u{fe0f} ☎\u{fe0e} ‼\u{fe0f}",
            "🏳\u{fe0f}\u{200d}🌈 🏴\u{200d}☠\u{fe0f} 👩🏽\u{200d}💻 ⛹🏿\u{200d}♀\u{fe0f} 🧑🏻\u{200d}❤\u{fe0f}\u{200d}💋\u{200d}🧑🏿",
            "ᄒ\u{1160}ᆫ \u{115f}ᅡ",
            "ᠠ\u{180b}ᠨ ᠭ\u{180d} ",
            "\u{2800}\u{2800}⣀⣴\u{2800}\u{2800}\n⣿\u{2800}\n",
            "𝅘𝅥\u{1d173}𝅘𝅥\u{1d174}",
        ] {
            assert!(matches!(neutral(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }
}
