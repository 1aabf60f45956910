//! Counts the values in JSON text before parsing, because a parsed value takes far more memory.

/// The number of names and values in JSON text; an empty array or object counts twice. For invalid JSON, at least as
/// many as a parser would build before it fails.
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

/// Skips to the end of a string whose opening quotation mark was just read.
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

/// At most about 350 bytes each, in objects with one member.
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

    /// Long strings must not count as many values, and strings must not hide values.
    #[test]
    fn strings_are_distinguished_from_values() {
        assert_eq!(count(r#""[1,2,3]{:,""#), 1);
        assert_eq!(count(r#""\",\\\",[""#), 1);
        assert_eq!(count(r#"["\\",1,"\"",2]"#), 5);
        assert_eq!(count(r#"["\\\\",{"a":1}]"#), 5);
        // Invalid JSON: a parser stops at the unterminated string.
        assert_eq!(count(r#"[1,"abc"#), 3);
    }
}
