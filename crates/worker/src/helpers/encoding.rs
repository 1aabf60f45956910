//! Decodes the text encodings of the web, as browsers do.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::{HelperAnswer, HelperError};

/// Text: the label of an encoding. Returns its name in lower case, or nothing for an unknown label.
pub fn name(text: &str) -> HelperAnswer {
    match Encoding::for_label_no_replacement(text.as_bytes()) {
        Some(encoding) => HelperAnswer::Text(encoding.name().to_ascii_lowercase()),
        None => HelperAnswer::Nothing,
    }
}

/// Text: an encoding name, `fatal` or `replace`, and `keep` or `strip` for the byte order mark, separated by spaces.
/// With `fatal`, invalid bytes return nothing.
pub fn decode(text: &str, bytes: &[u8]) -> Result<HelperAnswer, HelperError> {
    let mut words = text.split(' ');
    let (label, on_error, mark) = (words.next(), words.next(), words.next());
    let Some(encoding) = label.and_then(|label| Encoding::for_label_no_replacement(label.as_bytes())) else {
        return Err(HelperError::invalid(HELPER, "unsupported-encoding", "unknown encoding; use `utf-8`"));
    };
    let body = if mark == Some("keep") { bytes } else { without_mark(encoding, bytes) };
    let decoded = if on_error == Some("fatal") {
        encoding.decode_without_bom_handling_and_without_replacement(body)
    } else {
        Some(encoding.decode_without_bom_handling(body).0)
    };
    match decoded {
        None => Ok(HelperAnswer::Nothing),
        Some(text) if text.len() > OUTPUT_LIMIT => Err(HelperError::runtime(
            HELPER,
            "result-too-large",
            "the text has more than 16 MiB; decode it in parts",
        )),
        Some(text) => Ok(HelperAnswer::Text(text.into_owned())),
    }
}

/// Strips only the byte order mark of the requested encoding; another mark is text.
fn without_mark<'bytes>(encoding: &'static Encoding, bytes: &'bytes [u8]) -> &'bytes [u8] {
    let mark: &[u8] = if encoding == UTF_8 {
        b"\xef\xbb\xbf"
    } else if encoding == UTF_16LE {
        b"\xff\xfe"
    } else if encoding == UTF_16BE {
        b"\xfe\xff"
    } else {
        b""
    };
    bytes.strip_prefix(mark).unwrap_or(bytes)
}

const HELPER: &str = "TextDecoder";
const OUTPUT_LIMIT: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(how: &str, bytes: &[u8], expected: Option<&str>) {
        let expected = expected.map_or(HelperAnswer::Nothing, |text| HelperAnswer::Text(text.to_owned()));
        assert_eq!(decode(how, bytes), Ok(expected), "{how}: {bytes:?}");
    }

    #[test]
    fn text_is_decoded() {
        check("utf-8 replace strip", "Zürich 🚲".as_bytes(), Some("Zürich 🚲"));
        check("utf-16le replace strip", b"Z\0\xfc\0", Some("Zü"));
        check("utf-16be fatal strip", b"\0Z\0\xfc", Some("Zü"));
        check("windows-1252 replace strip", b"Z\xfc \x80", Some("Zü €"));
        check("shift_jis replace strip", b"\x93\xfa", Some("日"));
    }

    #[test]
    fn invalid_bytes_are_replaced_or_refused() {
        check("utf-8 replace strip", b"a\xffb\xe2\x82", Some("a\u{fffd}b\u{fffd}"));
        check("utf-8 fatal strip", b"a\xffb", None);
        check("utf-8 fatal strip", b"\xc0\x80", None);
        check("utf-8 fatal strip", b"\xed\xa0\x80", None);
        check("utf-16le fatal strip", b"\x00\xd8", None);
    }

    #[test]
    fn only_the_own_byte_order_mark_is_stripped() {
        check("utf-8 replace strip", b"\xef\xbb\xbfa", Some("a"));
        check("utf-8 replace keep", b"\xef\xbb\xbfa", Some("\u{feff}a"));
        check("utf-8 replace strip", b"\xef\xbb\xbf\xef\xbb\xbfa", Some("\u{feff}a"));
        check("utf-16le replace strip", b"\xff\xfea\0", Some("a"));
        check("utf-8 replace strip", b"\xff\xfea", Some("\u{fffd}\u{fffd}a"));
    }

    #[test]
    fn labels_have_one_name() {
        for (label, expected) in [("latin1", "windows-1252"), (" UTF8 ", "utf-8"), ("utf-16", "utf-16le")] {
            assert_eq!(name(label), HelperAnswer::Text(expected.to_owned()));
        }
        for unknown in ["", "utf-7", "iso-2022-kr", "utf\0-8"] {
            assert_eq!(name(unknown), HelperAnswer::Nothing, "{unknown}");
        }
    }

    #[test]
    fn unknown_encoding_is_refused() {
        for text in ["", "utf-7 fatal strip", "replacement replace strip"] {
            assert_eq!(
                decode(text, b"a").map_err(|error| error.reason),
                Err("unsupported-encoding".to_owned())
            );
        }
    }

    #[test]
    fn text_that_grows_beyond_the_limit_is_refused() {
        let bytes = vec![0xff; OUTPUT_LIMIT / 3 + 1];
        let refused = decode("utf-8 replace strip", &bytes).map_err(|error| error.reason);
        assert_eq!(refused, Err("result-too-large".to_owned()));
    }
}
