//! Finds characters that people cannot see or mistake for others.

use super::reading;
use crate::{Code, lint::show::code_point};

/// The findings about single characters, by code.
pub(in crate::lint) fn find(text: &str) -> Vec<(Code, Vec<String>)> {
    let mut found = Vec::new();
    let mut note = |code, hits: Vec<String>| {
        if !hits.is_empty() {
            found.push((code, hits));
        }
    };
    note(Code::LintPoisonControl, controls(text));
    if !text.is_ascii() {
        let characters: Vec<char> = text.chars().collect();
        note(Code::LintPoisonZeroWidth, invisible(&characters));
        note(Code::LintPoisonBidi, bidi(&characters));
        note(Code::LintPoisonLookalike, lookalikes(text));
    }
    found
}

/// Characters without a visible shape.
pub(in crate::lint) const fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' | '\u{2800}' | '\u{1d159}' | '\u{16fe4}'
        | '\u{13430}'..='\u{1343f}' | '\u{fdd0}'..='\u{fdef}' | '\u{e000}'..='\u{f8ff}'
        | '\u{f0000}'..='\u{10ffff}')
        || (character as u32) & 0xfffe == 0xfffe
}

/// Characters that reorder the text around them.
pub(in crate::lint) const fn is_bidi(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether the letter is Latin. Look-alike letters come from other scripts.
pub(in crate::lint) const fn is_latin(character: char) -> bool {
    character.is_ascii_alphabetic()
        || matches!(character, '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}')
}

fn controls(text: &str) -> Vec<String> {
    let mut hits = Vec::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_line_end = character == '\r' && characters.peek() == Some(&'\n');
        let is_escape = character == '\u{1b}' && matches!(characters.peek(), Some('[' | ']' | '(' | 'P'));
        if is_escape {
            hits.push("a terminal escape (U+001B)".to_owned());
        } else if (character.is_control() && !matches!(character, '\n' | '\t') && !is_line_end)
            || matches!(character, '\u{2028}' | '\u{2029}')
        {
            hits.push(code_point(character));
        }
    }
    hits
}

fn invisible(characters: &[char]) -> Vec<String> {
    let mut hits = Vec::new();
    for (index, &character) in characters.iter().enumerate() {
        if !is_invisible(character) {
            continue;
        }
        let before = index.checked_sub(1).and_then(|at| characters.get(at)).copied();
        let after = characters.get(index + 1).copied();
        let is_in_place = match character {
            '\u{200d}' => {
                (before.is_some_and(is_emoji_part) && after.is_some_and(is_emoji))
                    || before.is_some_and(joins_letters)
            }
            '\u{200c}' => before.is_some_and(joins_letters) && after.is_some_and(joins_letters),
            '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(|base| is_emoji(base) || is_keycap(base)),
            '\u{fe00}'..='\u{fe02}' | '\u{e0100}'..='\u{e01ef}' => before.is_some_and(is_ideograph),
            '\u{180b}'..='\u{180d}' | '\u{180f}' => {
                before.is_some_and(|base| matches!(base, '\u{1800}'..='\u{18af}'))
            }
            '\u{e0020}'..='\u{e007f}' => is_flag_tag(characters, index),
            '\u{2800}' => before.is_some_and(is_braille) || after.is_some_and(is_braille),
            _ => false,
        };
        if !is_in_place {
            hits.push(match character {
                '\u{e0000}'..='\u{e007f}' => "tag characters (U+E0000 to U+E007F)".to_owned(),
                '\u{e0100}'..='\u{e01ef}' => "variation selectors (U+E0100 to U+E01EF)".to_owned(),
                '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' => {
                    format!("private-use {}", code_point(character))
                }
                _ => code_point(character),
            });
        }
    }
    hits
}

fn bidi(characters: &[char]) -> Vec<String> {
    let mut hits = Vec::new();
    for (index, &character) in characters.iter().enumerate().filter(|(_, character)| is_bidi(**character)) {
        let near = |at: Option<usize>| {
            at.and_then(|at| characters.get(at)).is_some_and(|near| is_right_to_left(*near))
        };
        // A mark next to a Hebrew or Arabic letter is good typography; embeddings and overrides are not.
        let is_mark = matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}');
        if !(is_mark && (near(index.checked_sub(1)) || near(index.checked_add(1)))) {
            hits.push(code_point(character));
        }
    }
    hits
}

/// Words with look-alike letters.
fn lookalikes(text: &str) -> Vec<String> {
    let has_wide_script = text.chars().any(is_wide_script);
    let words = || text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_ascii());
    let is_foreign = |c: char| c.is_alphabetic() && !is_latin(c);
    let is_honest = |word: &str| {
        word.chars().any(|c| is_foreign(c) && reading::lookalike(c).is_none()) && !word.chars().any(is_latin)
    };
    let has_honest_words = words().any(is_honest);
    let mut hits = Vec::new();
    for word in words() {
        let disguised = word.chars().filter(|c| is_foreign(*c) && reading::lookalike(*c).is_some()).count();
        let is_mixed = disguised > 0 && word.chars().any(is_latin);
        let is_whole =
            disguised >= 3 && !has_honest_words && word.chars().all(|c| reading::lookalike(c).is_some());
        let is_styled = word.chars().filter(|c| is_mathematical(*c)).count() >= 2
            || (!has_wide_script && word.chars().filter(|c| is_full_width(*c)).count() >= 2);
        if is_mixed || is_whole || is_styled {
            let strange: Vec<String> =
                word.chars().filter(|c| !c.is_ascii()).take(3).map(code_point).collect();
            hits.push(format!("`{}` ({})", crate::lint::show::shown(word), strange.join(" ")));
        }
    }
    hits
}

/// The flags of England, Scotland and Wales: a black flag, a few tag letters, a terminator.
fn is_flag_tag(characters: &[char], index: usize) -> bool {
    let is_tag = |at: usize| matches!(characters.get(at), Some('\u{e0020}'..='\u{e007f}'));
    let start = (0..=LONGEST_FLAG).find_map(|back| {
        let at = index.checked_sub(back)?;
        (!is_tag(at)).then_some(at)
    });
    let Some(start) = start.filter(|at| characters.get(*at) == Some(&'\u{1f3f4}')) else { return false };
    (start + 1..=start + LONGEST_FLAG)
        .find(|at| characters.get(*at) == Some(&'\u{e007f}'))
        .is_some_and(|end| index <= end)
}

/// A pattern with dots. A blank between such patterns is a space in braille.
const fn is_braille(character: char) -> bool {
    matches!(character, '\u{2801}'..='\u{28ff}')
}

const fn is_emoji(character: char) -> bool {
    matches!(character,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2100}'..='\u{214f}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}'
        | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

const fn is_emoji_part(character: char) -> bool {
    is_emoji(character) || matches!(character, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}')
}

const fn is_keycap(character: char) -> bool {
    matches!(character, '0'..='9' | '#' | '*')
}

const fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Scripts that use joiners: Arabic and related scripts, those of India, Khmer, Mongolian.
const fn joins_letters(character: char) -> bool {
    matches!(character, '\u{600}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{18af}')
}

const fn is_right_to_left(character: char) -> bool {
    matches!(character, '\u{590}'..='\u{60f}' | '\u{61d}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// Scripts whose texts commonly contain full-width Latin letters.
const fn is_wide_script(character: char) -> bool {
    is_ideograph(character) || matches!(character, '\u{3040}'..='\u{30ff}' | '\u{ac00}'..='\u{d7af}')
}

const fn is_full_width(character: char) -> bool {
    matches!(character, '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}')
}

const fn is_mathematical(character: char) -> bool {
    matches!(character, '\u{1d400}'..='\u{1d6a5}' | '\u{24b6}'..='\u{24e9}' | '\u{1f130}'..='\u{1f189}')
}

/// The number of tag letters plus terminator in the longest flag in use.
const LONGEST_FLAG: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[Code]) {
        let codes: Vec<Code> = find(text).into_iter().map(|(code, _)| code).collect();
        assert_eq!(codes, expect, "{text:?}");
    }

    #[test]
    fn ordinary_text_in_any_language_is_accepted() {
        for text in [
            "한국어 뉴스를 검색합니다. API 키가 필요합니다.",
            "日本語のＡＰＩを呼び出します。",
            "查询天气，返回 JSON。",
            "يبحث عن الطقس ويعيد النتيجة",
            "מחפש מזג אוויר (API)",
            "می\u{200c}خواهم",
            "ค้นหาสภาพอากาศ",
            "Ищет погоду и новости, рост, нос",
            "Ελληνικά κείμενα",
            "Family \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} and \u{2764}\u{fe0f} and 1\u{fe0f}\u{20e3}",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} flag",
            "Δt in μm, 10 kΩ, naïve café, straße",
            "हिन्दी में क्\u{200d}ष",
            "line\r\nbreak\tand tab",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn hidden_and_disguised_characters_are_reported() {
        check("a\u{ad}b", &[Code::LintPoisonZeroWidth]);
        check("\u{3164}", &[Code::LintPoisonZeroWidth]);
        check("x\u{e0069}\u{e0067}", &[Code::LintPoisonZeroWidth]);
        check(
            "\u{1f3f4}\u{e0069}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}\u{e007f}",
            &[Code::LintPoisonZeroWidth],
        );
        check("a\u{fe0f}", &[Code::LintPoisonZeroWidth]);
        check("a\u{fff9}b", &[Code::LintPoisonZeroWidth]);
        check("a\u{2066}b", &[Code::LintPoisonBidi]);
        check("שלום\u{200f}!", &[]);
        check("abc\u{200f}!", &[Code::LintPoisonBidi]);
        check("p\u{430}yment", &[Code::LintPoisonLookalike]);
        check("\u{440}\u{430}\u{443} the bill", &[Code::LintPoisonLookalike]);
        check("\u{ff50}\u{ff41}\u{ff59} now", &[Code::LintPoisonLookalike]);
        check("\u{1d4f9}\u{1d4ea} now", &[Code::LintPoisonLookalike]);
        check("a\u{7}b", &[Code::LintPoisonControl]);
        check("a\rb", &[Code::LintPoisonControl]);
        check("a\u{9b}31mb", &[Code::LintPoisonControl]);
    }
}
