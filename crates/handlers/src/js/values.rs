//! How much does a result hold? Counted before it is built: a value takes far more memory than its text.

/// Names and values in a text of JSON; an empty list or object counts twice. Where the text is no JSON, no fewer than
/// a parser builds before it finds that out.
pub fn count(json: &str) -> usize {
    let mut count = 1;
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_text(&mut bytes),
            b'[' | b'{' | b',' | b':' => count += 1,
            _ => {}
        }
    }
    count
}

/// Up to the end of a text, whose first quotation mark was just read.
pub fn skip_text(bytes: &mut impl Iterator<Item = u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

/// Some 350 bytes each at worst, in objects that have one member.
pub const MOST: usize = 200_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_counted() {
        for (json, expected) in [
            ("1", 1),
            ("[]", 2),
            ("[1,2,3]", 4),
            (r#"{"a":1,"b":[2,{"c":null}]}"#, 9),
            (r#"[{"":0},{"":0}]"#, 7),
        ] {
            assert_eq!(count(json), expected, "{json}");
        }
    }

    /// Neither may a long text look like many values, nor values hide behind what looks like a text.
    #[test]
    fn texts_are_told_from_values() {
        assert_eq!(count(r#""[1,2,3]{:,""#), 1);
        assert_eq!(count(r#""\",\\\",[""#), 1);
        assert_eq!(count(r#"["\\",1,"\"",2]"#), 5);
        assert_eq!(count(r#"["\\\\",{"a":1}]"#), 5);
        // No JSON: a parser stops at the text that has no end.
        assert_eq!(count(r#"[1,"abc"#), 3);
    }
}
