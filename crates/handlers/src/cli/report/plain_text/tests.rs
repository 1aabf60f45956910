use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(bytes: impl AsRef<[u8]>, expect: &str) {
    assert_eq!(plain(bytes.as_ref()), expect, "{:?}", String::from_utf8_lossy(bytes.as_ref()));
}

#[test]
fn sequences_of_every_kind_are_taken_out() {
    check("\x1b[1;31mred\x1b[0m", "red");
    check("\x1b[38;2;255;0;0mx\x1b[?25l\x1b[2K", "x");
    check("\u{9b}31mx", "x");
    check("\x1b]0;title\x07x", "x");
    check("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\", "link");
    check("\u{9d}52;c;aGk=\u{9c}x", "x");
    check("\x1bP1$r0m\x1b\\x\x1b_app\x1b\\y\x1b^pm\x1b\\z\x1bXsos\x1b\\", "xyz");
    check("\u{90}dcs\u{9c}x\u{9e}pm\u{9c}y\u{9f}apc\u{9c}z\u{98}sos\u{9c}", "xyz");
    check("\x1bOPx\x1bNay\u{8f}Pz", "xyz");
    check("\x1b(Bx\x1b#8y\x1b cz\x1bcw\x1b7\x1b=", "xyzw");
}

#[test]
fn what_does_not_end_takes_no_more_than_its_line() {
    for start in ["\x1b", "\x1b[", "\x1b[12;", "\x1b]0;tit", "\x1bP", "\x1b(", "\u{9b}1", "\u{9d}x", "\x1bO"]
    {
        check(format!("a{start}"), "a");
        check(format!("a{start}\nnext line\n"), "a\nnext line\n");
        check(format!("a{start}\n1;2\n3"), "a\n1;2\n3");
        assert!(plain(format!("{start}\nnext line\nlast").as_bytes()).ends_with("last"), "{start:?}");
    }
    check("\x1b]0;a\x1b[31mred", "red");
    check("\x1b[3\x18x", "x");
    check("\x1b]0;a\x1ax", "x");
    check("\x1b[31\u{e9}x", "\u{e9}x");
}

#[test]
fn stray_controls_and_bytes_do_not_come_through() {
    check(b"\xef\xbb\xbfx\xff\xfey\0z\x07", "x\u{fffd}\u{fffd}yz");
    check("a\u{85}b\u{7f}c\x0cd", "abcd");
    check("tab\there\n", "tab\there\n");
}

#[test]
fn of_overwritten_lines_the_last_state_is_left() {
    check(
        "Receiving:  1% (1/9)\rReceiving: 50% (5/9)\rReceiving: 100% (9/9), done.\n",
        "Receiving: 100% (9/9), done.\n",
    );
    check("##   20.0%\r##### 60.5%\r######## 100.0%", "######## 100.0%");
    check("port=80\rport2=90\r1/2\r3/4\r#a\r#ab", "port=80\nport2=90\n1/2\n3/4\n#a\n#ab");
    check("rate 5%\rlimit 6%\r%\r%\n", "rate 5%\nlimit 6%\n%\n%\n");
    check("dos\r\nlines\r\n", "dos\nlines\n");
    check("old\rmac\rlines", "old\nmac\nlines");
    check("1\r2\r3\n", "1\n2\n3\n");
    check("bo\u{8}ol_\u{8}d\n", "bold\n");
    check("a\n\u{8}\u{8}b", "a\nb");
}

proptest! {
    #[test]
    fn whatever_comes_out_cannot_steer_a_terminal(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let text = plain(&bytes);
        prop_assert!(!text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')));
    }

    #[test]
    fn lines_without_controls_are_left_alone(text in "[ -~\u{e9}\u{4e00}\n\t]{0,200}") {
        prop_assert_eq!(plain(text.as_bytes()), text);
    }

    #[test]
    fn no_line_that_tells_no_progress_is_lost(lines in proptest::collection::vec("[a-b0-2/#= ]{0,3}[a-b0-2/#=]", 1..6)) {
        prop_assert_eq!(plain(lines.join("\r").as_bytes()), lines.join("\n"));
    }

    #[test]
    fn line_breaks_stay(text in "[a-z\x1b\\[\\]\u{9b}\n;0-9]{0,200}") {
        let breaks = |text: &str| text.matches('\n').count();
        prop_assert_eq!(breaks(&plain(text.as_bytes())), breaks(&text));
    }
}
