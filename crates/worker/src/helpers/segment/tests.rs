use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

/// The ends of the segments, and whether each is a word.
fn segments(granularity: &str, tag: &str, text: &str) -> Vec<(usize, bool)> {
    let Ok(HelperAnswer::Bytes(bytes)) = segment(&format!("{granularity} {tag}\n{text}")) else {
        panic!("no segments of {text:.40}");
    };
    let numbers = bytes.chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()));
    numbers.map(|number| ((number & !(1 << 31)) as usize, number >> 31 == 1)).collect()
}

#[test]
fn ends_are_utf16_offsets() {
    assert_eq!(
        segments("grapheme", "en", "a🙂e\u{301}\r\n"),
        [(1, false), (3, false), (5, false), (7, false)]
    );
    assert_eq!(segments("grapheme", "en", ""), []);
}

#[test]
fn words_are_marked() {
    assert_eq!(segments("word", "en", "It's 3.14!"), [(4, true), (5, false), (9, true), (10, false)]);
    assert_eq!(segments("word", "en", "क्षि "), [(4, true), (5, false)]);
    assert_eq!(segments("word", "ja", "世界。"), [(2, true), (3, false)]);
}

#[test]
fn sentences_depend_on_the_language() {
    assert_eq!(segments("sentence", "en", "ένα; δύο."), [(9, false)]);
    assert_eq!(segments("sentence", "el", "ένα; δύο."), [(5, false), (9, false)]);
}

#[test]
fn invalid_locales_get_no_answer() {
    let long = format!("en-x-{}", "a-".repeat(1 << 16));
    for tag in ["", "e", "en_", "en-", "*", "../../etc", "en en", long.as_str()] {
        assert_eq!(segment(&format!("word {tag}\ntext")), Ok(HelperAnswer::Nothing), "{tag:.40}");
    }
}

#[test]
fn malformed_questions_are_rejected() {
    assert_eq!(segment("line en\ntext").unwrap_err().reason, "bad-question");
    assert_eq!(segment(""), Ok(HelperAnswer::Nothing));
}

#[test]
fn texts_beyond_the_limit_are_rejected() {
    assert_eq!(segments("sentence", "en", &"a".repeat(MAX_BYTES)), [(MAX_BYTES, false)]);
    let too_long = format!("word en\n{}", "a".repeat(MAX_BYTES + 1));
    assert_eq!(segment(&too_long).unwrap_err().reason, "text-too-long");
}

#[test]
fn long_runs_take_linear_time() {
    for run in ["a", "1,", "\u{301}", "🇩", "👩\u{200d}", "ก", "中华人民共和国", ". 1 ", "ក"] {
        let text = run.repeat(MAX_BYTES / run.len());
        for granularity in ["grapheme", "word", "sentence"] {
            let started = Instant::now();
            segments(granularity, "en", &text);
            assert!(
                started.elapsed() < Duration::from_secs(20),
                "{granularity} {run}: {:?}",
                started.elapsed()
            );
        }
    }
}

proptest! {
    #[test]
    fn ends_increase_up_to_the_length(text in "\\PC{0,60}", granularity in "(grapheme|word|sentence)", tag in "(en|el|sv|ja)") {
        let ends: Vec<usize> = segments(&granularity, &tag, &text).iter().map(|(end, _)| *end).collect();
        prop_assert!(ends.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert_eq!(ends.last().copied().unwrap_or(0), text.encode_utf16().count());
    }
}
