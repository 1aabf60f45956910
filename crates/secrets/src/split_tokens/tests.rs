//! Joining split tokens.

use super::*;

#[track_caller]
fn check(text: &str, expect: &[&str]) {
    let mut views = Vec::new();
    join(text.as_bytes(), |view| views.push(String::from_utf8_lossy(&view.text).into_owned()));
    assert_eq!(views, expect);
}

#[test]
fn tokens_broken_by_line_ends_are_joined() {
    check("x 0123456789\nabcdefghij y", &["0123456789abcdefghij"]);
    check("0123456789\r\n   abcdefghij", &["0123456789abcdefghij"]);
    check("0123456789 \\\nabcdefghij", &["0123456789abcdefghij"]);
    check("> 0123456789\n> abcdefghij", &["0123456789abcdefghij"]);
    check("01234567\n89abcd\nefghij", &["0123456789abcdefghij"]);
    check(r"01234567\n89abcd\r\nefghij\n", &["0123456789abcdefghij"]);
}

#[test]
fn string_literals_are_joined() {
    check("\"0123456789\" + \"abcdefghij\"", &["0123456789abcdefghij"]);
    check("'0123456789'\n  'abcdefghij'", &["0123456789abcdefghij"]);
}

#[test]
fn sums_and_short_words_are_not_joined() {
    check("0123456789 + abcdefghij", &[]);
    check("the words\nof a text", &[]);
    check("0123456789,\nabcdefghij", &[]);
    check("0123456789\n\n", &[]);
    check("\n\n\n", &[]);
    check(r"0123456789\t\abcdefghij\", &[]);
    check(r"said:\nthe words", &[]);
}
