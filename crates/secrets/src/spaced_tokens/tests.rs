//! Reassembling tokens of single characters.

use super::*;

#[track_caller]
fn check(text: &str, expect: &[&str]) {
    let mut views = Vec::new();
    spread(text.as_bytes(), |view| views.push(String::from_utf8_lossy(&view.text).into_owned()));
    assert_eq!(views, expect);
}

#[test]
fn single_characters_are_gathered() {
    check("0 1 2 3 4 5 6 7 8 9 a b c d e f", &["0123456789abcdef"]);
    check("0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f", &["0123456789abcdef"]);
    check("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\na\nb\nc\nd\ne\nf", &["0123456789abcdef"]);
}

#[test]
fn characters_next_to_a_word_are_tried_both_ways() {
    check("word0 1 2 3 4 5 6 7 8 9 a b c d e f gword", &["0123456789abcdefg"]);
    check("word0 1 2 3 4 5 6 7 8 9 a b c d e f g hword", &["123456789abcdefg", "0123456789abcdefgh"]);
}

#[test]
fn characters_are_gathered_at_every_position_and_gap() {
    for gaps in [[1, 1, 1, 1], [4, 4, 4, 4], [1, 4, 2, 3], [4, 1, 1, 4]] {
        let mut set_apart = String::from("x");
        for gap in gaps.iter().cycle().take(15) {
            set_apart.push_str(&" ".repeat(*gap));
            set_apart.push('x');
        }
        for (before, behind) in [("", ""), ("     ", " "), ("       ", "     word")] {
            for shift in 0..32 {
                check(&format!("{}{before}{set_apart}{behind}", "\n".repeat(shift)), &["xxxxxxxxxxxxxxxx"]);
                let word = "w".repeat(shift);
                check(&format!("{word}     {set_apart}{behind}"), &["xxxxxxxxxxxxxxxx"]);
            }
        }
    }
}

#[test]
fn words_and_wide_gaps_are_not_gathered() {
    check("some words of a text and a few more of them", &[]);
    check(&"a      ".repeat(40), &[]);
    check(&" ".repeat(400), &[]);
    check("", &[]);
}
