//! Decodes escapes in a text, and maps decoded ranges back to the original text.

use std::ops::Range;

/// A text with one kind of escape decoded.
struct DecodedText {
    bytes: Vec<u8>,
    /// One entry after each escape, in order.
    jumps: Vec<Jump>,
}

/// From this decoded offset on, text is read from that original offset.
struct Jump {
    here: usize,
    source: usize,
}

type EscapeDecoder = fn(&[u8]) -> Option<DecodedText>;

/// Calls `look` with every decoded form of a text: percent escapes, backslash escapes, and both in either order for double
/// escaping. Each comes with a function that maps a range back to the original text.
pub(super) fn for_each_view(text: &[u8], mut look: impl FnMut(&[u8], &dyn Fn(Range<usize>) -> Range<usize>)) {
    const READERS: [EscapeDecoder; 2] = [percent_decoded, unescaped];
    for outer in READERS.iter().filter_map(|read| read(text)) {
        look(&outer.bytes, &|found| outer.source(found));
        for inner in READERS.iter().filter_map(|read| read(&outer.bytes)) {
            look(&inner.bytes, &|found| outer.source(inner.source(found)));
        }
    }
}

/// Forms write a space as `+`. Replaces every space in texts and in patterns alike.
pub(super) fn with_plus_for_space(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| if *byte == b' ' { b'+' } else { *byte }).collect()
}

fn percent_decoded(text: &[u8]) -> Option<DecodedText> {
    let view = DecodedText::of(text, b'%', percent_escape)?;
    Some(DecodedText { bytes: with_plus_for_space(&view.bytes), ..view })
}

fn unescaped(text: &[u8]) -> Option<DecodedText> {
    DecodedText::of(text, b'\\', backslash_escape)
}

impl DecodedText {
    /// `None` if the text has no escape. `undo` writes the decoded bytes and returns the length of the escape; otherwise the
    /// character stays as it is.
    fn of(text: &[u8], mark: u8, undo: fn(&[u8], &mut Vec<u8>) -> Option<usize>) -> Option<Self> {
        if !text.contains(&mark) {
            return None;
        }
        let mut view = Self { bytes: Vec::with_capacity(text.len()), jumps: Vec::new() };
        let mut rest = text;
        while let Some(at) = rest.iter().position(|byte| *byte == mark) {
            let (before, marked) = rest.split_at(at);
            view.bytes.extend_from_slice(before);
            if let Some(length) = undo(marked, &mut view.bytes) {
                rest = marked.get(length..).unwrap_or_default();
                view.jumps.push(Jump { here: view.bytes.len(), source: text.len() - rest.len() });
            } else {
                view.bytes.push(mark);
                rest = marked.get(1..).unwrap_or_default();
            }
        }
        view.bytes.extend_from_slice(rest);
        (!view.jumps.is_empty()).then_some(view)
    }

    fn source(&self, found: Range<usize>) -> Range<usize> {
        self.place(found.start)..self.place(found.end)
    }

    fn place(&self, at: usize) -> usize {
        let before = self.jumps.partition_point(|jump| jump.here <= at);
        match before.checked_sub(1).and_then(|last| self.jumps.get(last)) {
            Some(jump) => jump.source + (at - jump.here),
            None => at,
        }
    }
}

/// `%7E` with digits in either case, and `%u20ac` as in the old `escape`.
fn percent_escape(marked: &[u8], bytes: &mut Vec<u8>) -> Option<usize> {
    if let [_, b'u', digits @ ..] = marked {
        let (character, length) = utf16(digits, b"%u")?;
        push(bytes, character);
        return Some(2 + length);
    }
    bytes.push(byte(marked.get(1..)?)?);
    Some(3)
}

/// As in JSON, JavaScript and Rust. A backslash before any other character yields that character.
fn backslash_escape(marked: &[u8], bytes: &mut Vec<u8>) -> Option<usize> {
    match marked.get(1..)? {
        [b'u', b'{', digits @ ..] => {
            let count = digits.iter().take(7).position(|byte| *byte == b'}').filter(|count| *count > 0)?;
            push(bytes, char::from_u32(number(digits, count)?)?);
            Some(count + 4)
        }
        [b'u', digits @ ..] => {
            let (character, length) = utf16(digits, b"\\u")?;
            push(bytes, character);
            Some(2 + length)
        }
        [b'x', digits @ ..] => {
            bytes.push(byte(digits)?);
            Some(4)
        }
        [letter, ..] => {
            bytes.push(meant_by(*letter)?);
            Some(2)
        }
        [] => None,
    }
}

fn meant_by(letter: u8) -> Option<u8> {
    match letter {
        b'0' => Some(0),
        b'b' => Some(8),
        b't' => Some(b'\t'),
        b'n' => Some(b'\n'),
        b'v' => Some(11),
        b'f' => Some(12),
        b'r' => Some(b'\r'),
        mark => (mark == b' ' || mark.is_ascii_punctuation()).then_some(mark),
    }
}

/// A UTF-16 escape of four digits, or a surrogate pair, with its length.
fn utf16(digits: &[u8], mark: &[u8]) -> Option<(char, usize)> {
    let first = number(digits, 4)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 4));
    }
    let second = number(digits.get(4..)?.strip_prefix(mark)?, 4)?;
    let units = [u16::try_from(first).ok()?, u16::try_from(second).ok()?];
    let character = char::decode_utf16(units).next()?.ok()?;
    Some((character, 8 + mark.len()))
}

fn byte(digits: &[u8]) -> Option<u8> {
    u8::try_from(number(digits, 2)?).ok()
}

fn number(digits: &[u8], count: usize) -> Option<u32> {
    let digits = digits.get(..count)?.iter();
    digits
        .map(|digit| char::from(*digit).to_digit(16))
        .try_fold(0, |number, digit| Some(number * 16 + digit?))
}

fn push(bytes: &mut Vec<u8>, character: char) {
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(view: Option<DecodedText>, expect: &str) {
        assert_eq!(String::from_utf8_lossy(&view.unwrap().bytes), expect);
    }

    #[test]
    fn percent_escapes_are_decoded() {
        check(percent_decoded(b"a%2Fb%7e%41 100% %4"), "a/b~A+100%+%4");
        check(percent_decoded("ä%C3%A4%u00e4%ud83d%ude00%ud83d".as_bytes()), "äää😀%ud83d");
        assert!(percent_decoded(b"100% of a+b").is_none());
    }

    #[test]
    fn backslash_escapes_are_decoded() {
        check(unescaped(br#"a\"\'\/\\n\n\x41"#), "a\"'/\\n\nA");
        check(unescaped(br"\u00e4\ud83D\uDE00\u{e4}\u{1f600}"), "ä😀ä😀");
        check(unescaped(br"\ud83d\\\u{}\u12\q\"), r"\ud83d\\u{}\u12\q\");
        assert!(unescaped(br"C:\Users").is_none());
    }

    /// The range of a decoded text maps to exactly its escaped source.
    #[test]
    fn decoded_range_maps_back_to_its_source() {
        let text = r"x\u00e4%27\u0025\u0032\u0037y";
        let mut seen = Vec::new();
        for_each_view(text.as_bytes(), |bytes, source| {
            let whole = source(0..bytes.len());
            assert_eq!(whole, 0..text.len());
            let quote = bytes.iter().rposition(|byte| *byte == b'\'').map(|at| source(at..at + 1));
            seen.push(quote.map(|range| text[range].to_owned()));
        });
        let quote = |text: &str| Some(text.to_owned());
        assert_eq!(seen, [quote("%27"), quote("%27"), None, quote(r"\u0025\u0032\u0037")]);
    }
}
