//! Maps Unicode look-alikes to the ASCII characters that they imitate.

/// How a character looks to a reader.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Appearance {
    /// Invisible: it has no width, or combines with the character before it.
    Invisible,
    Ascii(u8),
}

/// Returns `None` for characters that do not imitate ASCII. Uses a table instead of full compatibility folding, because
/// only characters that occur in tokens matter.
pub(crate) fn appearance(character: char) -> Option<Appearance> {
    let code = u32::from(character);
    let appearance = match code {
        0x80..=0x84
        | 0x86..=0x9f
        | 0xad
        | 0x300..=0x36f
        | 0x61c
        | 0x115f..=0x1160
        | 0x17b4..=0x17b5
        | 0x180b..=0x180f
        | 0x1ab0..=0x1aff
        | 0x1dc0..=0x1dff
        | 0x200b..=0x200f
        | 0x202a..=0x202e
        | 0x2060..=0x206f
        | 0x20d0..=0x20ff
        | 0x3164
        | 0xfe00..=0xfe0f
        | 0xfe20..=0xfe2f
        | 0xfeff
        | 0xffa0
        | 0xfff0..=0xfffb
        | 0x1_bca0..=0x1_bca3
        | 0x1_d173..=0x1_d17a
        | 0xe_0000..=0xe_0fff => Appearance::Invisible,
        0x85 | 0x2028..=0x2029 => Appearance::Ascii(b'\n'),
        0xa0 | 0x1680 | 0x2000..=0x200a | 0x202f | 0x205f | 0x2800 | 0x3000 => Appearance::Ascii(b' '),
        0x2010..=0x2015 | 0x2043 | 0x2212 | 0x2796 | 0xfe58 | 0xfe63 => Appearance::Ascii(b'-'),
        0x2024 | 0xfe52 => Appearance::Ascii(b'.'),
        0x2044 | 0x2215 | 0x29f8 => Appearance::Ascii(b'/'),
        0x2236 | 0xa789 | 0xfe55 => Appearance::Ascii(b':'),
        0xfe4d..=0xfe4f => Appearance::Ascii(b'_'),
        0xff01..=0xff5e => Appearance::Ascii(byte(code - 0xff01, b'!')),
        0x1d400..=0x1d6a3 => Appearance::Ascii(letter((code - 0x1d400) % 52)),
        0x1d7ce..=0x1d7ff => Appearance::Ascii(byte((code - 0x1d7ce) % 10, b'0')),
        0x1fbf0..=0x1fbf9 => Appearance::Ascii(byte(code - 0x1fbf0, b'0')),
        0x24b6..=0x24cf => Appearance::Ascii(byte(code - 0x24b6, b'A')),
        0x24d0..=0x24e9 => Appearance::Ascii(byte(code - 0x24d0, b'a')),
        0x1f130..=0x1f149 => Appearance::Ascii(byte(code - 0x1f130, b'A')),
        0x1f150..=0x1f169 => Appearance::Ascii(byte(code - 0x1f150, b'A')),
        0x1f170..=0x1f189 => Appearance::Ascii(byte(code - 0x1f170, b'A')),
        _ => return letter_like(character).map(Appearance::Ascii),
    };
    Some(appearance)
}

/// Letters that Unicode had before the mathematical alphabets and that are missing there.
fn letter_like(character: char) -> Option<u8> {
    let letter = match character {
        'ℂ' | 'ℭ' => b'C',
        'ℊ' => b'g',
        'ℋ' | 'ℌ' | 'ℍ' => b'H',
        'ℎ' => b'h',
        'ℐ' | 'ℑ' => b'I',
        'ℒ' => b'L',
        'ℓ' => b'l',
        'ℕ' => b'N',
        'ℙ' => b'P',
        'ℚ' => b'Q',
        'ℛ' | 'ℜ' | 'ℝ' => b'R',
        'ℤ' | 'ℨ' => b'Z',
        'ℬ' => b'B',
        'ℯ' => b'e',
        'ℰ' => b'E',
        'ℱ' => b'F',
        'ℳ' => b'M',
        'ℴ' => b'o',
        'K' => b'K',
        _ => return None,
    };
    Some(letter)
}

/// Capitals first, as in the mathematical alphabets.
fn letter(index: u32) -> u8 {
    if index < 26 { byte(index, b'A') } else { byte(index - 26, b'a') }
}

/// INVARIANT: every caller's offset stays within ASCII.
fn byte(offset: u32, from: u8) -> u8 {
    u8::try_from(offset).map_or(from, |offset| from.saturating_add(offset))
}

#[cfg(test)]
mod tests {
    use super::{Appearance, appearance};

    #[test]
    fn look_alikes_map_to_ascii() {
        for (text, expected) in [
            ("ｇｈｐ＿０", "ghp_0"),
            ("𝚐𝚑𝚙𝟶𝐀𝗓", "ghp0Az"),
            ("–—−", "---"),
            ("ⓖⒽ🄰", "gHA"),
            ("\u{a0}\u{3000}\u{2800}\u{1680}", "    "),
        ] {
            let folded: String = text
                .chars()
                .map(|character| match appearance(character) {
                    Some(Appearance::Ascii(byte)) => char::from(byte),
                    other => panic!("{character:?} appearance as {other:?}"),
                })
                .collect();
            assert_eq!(folded, expected);
        }
    }

    #[test]
    fn zero_width_characters_map_to_nothing() {
        for character in [
            '\u{301}',
            '\u{336}',
            '\u{20dd}',
            '\u{200b}',
            '\u{200d}',
            '\u{feff}',
            '\u{ad}',
            '\u{2060}',
            '\u{fe0f}',
            '\u{e0041}',
        ] {
            assert_eq!(appearance(character), Some(Appearance::Invisible), "{character:?}");
        }
    }

    #[test]
    fn letters_of_other_scripts_stay() {
        for character in ['é', 'ß', 'я', '中', 'a', '-', '"', '’'] {
            assert_eq!(appearance(character), None, "{character:?}");
        }
    }
}
