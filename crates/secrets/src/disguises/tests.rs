//! Decoding disguised texts.

use super::*;

#[track_caller]
fn check(text: &str, expect: &[&str]) {
    let mut views = Vec::new();
    unfold(text.as_bytes(), &mut UnfoldBuffers::default(), |view| {
        views.push(String::from_utf8_lossy(&view.text).into_owned());
    });
    assert_eq!(views, expect);
}

#[test]
fn plain_text_has_no_views() {
    check("plain, 100% \\n of it \\\"x\\\" & co. %20 größer 中文 “quoted”", &[]);
}

#[test]
fn each_disguise_is_undone() {
    check("a%5Fb", &["a_b"]);
    check("a%20b%5fc", &["a b_c"]);
    check(r"a\u005fb\u{5f}c\U0000005fd", &["a_b_c_d"]);
    check(r"a\x5fb\137c\/d", &["a_b_c/d"]);
    check("a&#95;b&#x5F;c&#95d", &["a_b_c_d"]);
    check("ａ–ｂ\u{200b}c", &["a-bc"]);
    check(r"\ud835\ude90", &["g"]);
    check("a\0b\u{7f}c\u{1b}[0md\u{1b}[1;31me\u{1b}(Bf\u{85}g\u{202e}h", &["abcdef\ngh"]);
}

#[test]
fn line_ends_within_tokens_and_escaped_escapes_are_undone() {
    check(r"ghp_16C7\n292c", &["ghp_16C7\n292c"]);
    check(r"ghp_16C7\t292c\r292c", &["ghp_16C7\t292c\n292c"]);
    check(r#"said \"yes\".\n then\n"#, &[]);
    check(r"ghp\\u005f16C7", &[r"ghp\u005f16C7"]);
    check(r"C:\\dir\\file", &[]);
    // Any number of them, without an extra level for each.
    let many = "\\".repeat(100_000);
    check(&format!("{many}u005f"), &[&format!("{}u005f", "\\".repeat(50_000))]);
}

/// Only a complete terminal sequence is skipped, not the text behind it.
#[test]
fn unterminated_sequence_is_one_character() {
    check("a\u{1b}[0;1 b\u{1b}]c\u{1b}", &["a[0;1 b]c"]);
    check("a\u{9b}31mb\u{9b}31 c\u{9d}0;x\u{7}d\u{1b}]8;;x\u{1b}\\e", &["ab31 cde"]);
}

#[test]
fn truncated_escape_stays() {
    check(r"%5 %5G \u00 \u{} \x4 &#; &#x; \ud835 %", &[]);
    check("a%5F%5", &["a_%5"]);
}

/// An escaped line end before a word of a sentence is ignored.
#[test]
fn line_end_before_a_token_or_name_is_decoded() {
    check(r"x: \ndapi0123456789", &["x: \ndapi0123456789"]);
    check(r"x: \tpwd=1 \npass: x", &["x: \tpwd=1 \npass: x"]);
    check("Hello%20dapi0123456789", &["Hello dapi0123456789"]);
    check(r"said,\nThen they left, \tor so %20they said", &[]);
    check(r#"\\\"a\\\""#, &[r#"\"a\""#]);
}

#[test]
fn spans_refer_to_the_original() {
    let text = "x ab%5Fcd y";
    let mut seen = None;
    unfold(text.as_bytes(), &mut UnfoldBuffers::default(), |view| seen = view.original(&(2..7)));
    assert_eq!(seen, Some((2..9, Encoding::Url)));
    unfold(text.as_bytes(), &mut UnfoldBuffers::default(), |view| seen = view.original(&(2..4)));
    assert_eq!(seen, None, "nothing was undone there");
    unfold(text.as_bytes(), &mut UnfoldBuffers::default(), |view| seen = view.original_or_beside(&(2..4)));
    assert_eq!(seen, Some((2..4, Encoding::Url)), "but beside it");
}

#[test]
fn distant_places_have_separate_views() {
    let text = format!("a%5Fb{}c%5Fd", " word".repeat(200));
    let mut views = 0;
    unfold(text.as_bytes(), &mut UnfoldBuffers::default(), |_| views += 1);
    assert_eq!(views, 2);
}
