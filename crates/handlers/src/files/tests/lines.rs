use super::{
    super::pattern::{LetterCase, LinePattern},
    *,
};

fn file(content: impl AsRef<[u8]>) -> Ground {
    let ground = Ground::new();
    ground.put("ws/f", content);
    ground
}

#[track_caller]
fn check_grep(content: &str, pattern: &str, options: GrepOptions, expect: &[&str]) {
    assert_eq!(file(content).files().grep(pattern, "f", options).unwrap(), expect, "{pattern}");
}

#[track_caller]
fn check_cut(content: &str, fields: &[i64], delimiter: Option<&str>, regex: bool, expect: &[&str]) {
    let options = CutOptions { fields: fields.to_vec(), delimiter: delimiter.map(Into::into), regex };
    assert_eq!(file(content).files().cut("f", &options).unwrap(), expect);
}

#[track_caller]
fn check_sort(content: &str, options: SortOptions, expect: &[&str]) {
    assert_eq!(file(content).files().sort("f", options).unwrap(), expect);
}

const PLAIN: GrepOptions = GrepOptions { case_insensitive: false, limit: 0, numbered: false };

#[test]
fn grep_finds_matches_anywhere_in_a_line() {
    check_grep("one\r\ntwo\nThree", "[ot]", PLAIN, &["one", "two"]);
    check_grep("one\ntwo\nThree", "^t", GrepOptions { case_insensitive: true, ..PLAIN }, &["two", "Three"]);
    check_grep("a\nb\na\na", "a", GrepOptions { limit: 2, numbered: true, ..PLAIN }, &["1:a", "3:a"]);
    check_grep("a\n\nb", "^$", PLAIN, &[""]);
    check_grep("ab\nb", r"\Bb$", PLAIN, &["ab"]);
    check_grep("cat\nconcat", r"\bcat\b", PLAIN, &["cat"]);
    check_grep("äöü\nab", "^...$", PLAIN, &["äöü"]);
    check_grep("straße 5\nx", r"^\w+ \d$", PLAIN, &["straße 5"]);
    check_grep("x=1;", "(?<name>x)=(?:1|2)", PLAIN, &["x=1;"]);
    check_grep("a", ".", PLAIN, &["a"]);
    check_grep("", ".*", PLAIN, &[]);
}

#[test]
fn invalid_pattern_is_explained() {
    let ground = file("a");
    let files = ground.files();
    refused(files.grep("", "f", PLAIN), "INVALID_INPUT grep grep-pattern-required");
    for (pattern, why) in [
        ("(?=a)", "look-around"),
        ("(?<!a)", "look-around"),
        (r"(a)\1", "backreference"),
        ("(", "unclosed"),
        ("[z-a]", "range"),
        (r"\w{1000}{1000}", "too large"),
        (&"(".repeat(5000), "longer than"),
        (&format!("{}a{}", "(".repeat(300), ")".repeat(300)), "nest"),
    ] {
        let result = files.grep(pattern, "f", PLAIN);
        assert!(result.as_ref().is_err_and(|error| error.message.contains(why)), "{pattern}: {result:?}");
        refused(result, "INVALID_INPUT grep grep-invalid-pattern");
    }
}

#[test]
fn lines_are_counted_by_content_not_by_line_ends() {
    for (content, expect) in [("", 0), ("\n", 1), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\r\n\r\n", 2)] {
        assert_eq!(file(content).files().line_count("f").unwrap(), expect, "{content:?}");
    }
    refused(file(b"a\n\xff").files().line_count("f"), "HELPER_RUNTIME lineCount io");
    refused(file("a").files().line_count("."), "INVALID_INPUT lineCount not-a-file");
}

#[test]
fn slice_counts_from_either_end_and_is_clamped() {
    let ground = file("0\n1\r\n2\n3\n4\n");
    for (start, end, expect) in [
        (0, 2, "01"),
        (1, 3, "12"),
        (3, 99, "34"),
        (-2, 99, "34"),
        (0, -4, "0"),
        (-99, -4, "0"),
        (-3, -1, "23"),
        (2, 2, ""),
        (3, 1, ""),
        (9, 12, ""),
        (i64::MIN, i64::MAX, "01234"),
    ] {
        assert_eq!(ground.files().slice("f", start, end).unwrap().concat(), expect, "{start}..{end}");
    }
}

#[test]
fn cut_returns_fields_in_the_requested_order() {
    check_cut("a\tb\tc\nd", &[3, 1], None, false, &["c\ta", "\td"]);
    check_cut("a, b,c", &[2, 2], Some(","), false, &[" b, b"]);
    check_cut("a  b   c", &[1, 3], Some(" +"), true, &["a\tc"]);
    check_cut("a1b22c", &[0, -1, 2, 9], Some("[0-9]+"), true, &["\t\tb\t"]);
    check_cut("äöü", &[1, 2], Some("ö"), true, &["ä\tü"]);
    check_cut("äb", &[1], Some(r"x*"), true, &["äb"]);
    check_cut("xäbx", &[1, 2, 3], Some(r"x|\B"), true, &["\täb\t"]);
    check_cut("a.b", &[2], Some("."), false, &["b"]);
}

#[test]
fn cut_rejects_invalid_delimiters() {
    let ground = file("a");
    let files = ground.files();
    let cut = |fields: &[i64], delimiter: &str, regex| {
        let options = CutOptions { fields: fields.to_vec(), delimiter: Some(delimiter.into()), regex };
        files.cut("f", &options)
    };
    refused(cut(&[], ",", false), "INVALID_INPUT cut cut-fields-required");
    refused(cut(&[1], "", false), "INVALID_INPUT cut cut-invalid-delimiter");
    refused(cut(&[1], "(?=a)", true), "INVALID_INPUT cut cut-invalid-delimiter");
}

#[test]
fn repeated_long_field_exceeds_the_limit() {
    let ground = file("x".repeat(1 << 20));
    let options = CutOptions { fields: vec![1; 1_000_000], ..CutOptions::default() };
    refused(ground.files().cut("f", &options), "HELPER_RUNTIME cut result-too-large");
    let options = CutOptions { fields: vec![7; 10_000_000], ..CutOptions::default() };
    refused(ground.files().cut("f", &options), "HELPER_RUNTIME cut result-too-large");
}

#[test]
fn sort_follows_its_options() {
    let plain = SortOptions::default();
    check_sort("b\nB\na\n10\n9\nb", plain, &["10", "9", "B", "a", "b", "b"]);
    check_sort("b\na\nb", SortOptions { unique: true, reverse: true, ..plain }, &["b", "a"]);
    check_sort("b\nA\nB\na", SortOptions { case_insensitive: true, ..plain }, &["A", "a", "b", "B"]);
    check_sort(
        "b\nA\nB\na",
        SortOptions { case_insensitive: true, unique: true, reverse: true, ..plain },
        &["b", "B", "A", "a"],
    );
    let numeric = SortOptions { numeric: true, ..plain };
    check_sort("x\n10\n 9\n-1.5\nnan\n1e1", numeric, &["-1.5", " 9", "10", "1e1", "x", "nan"]);
    check_sort("x\n10\n9\ninf", SortOptions { reverse: true, ..numeric }, &["10", "9", "x", "inf"]);
    check_sort("0\n-0", numeric, &["0", "-0"]);
}

#[test]
fn results_are_bounded() {
    let ground = file("a\n".repeat(20_000));
    let files = ground.files();
    assert_eq!(files.grep("a", "f", PLAIN).unwrap().len(), 10_000);
    assert_eq!(files.slice("f", 0, 10_000).unwrap().len(), 10_000);
    assert_eq!(files.sort("f", SortOptions { unique: true, ..SortOptions::default() }).unwrap(), ["a"]);
    let beyond = GrepOptions { limit: 10_001, ..PLAIN };
    refused(files.grep("a", "f", beyond), "HELPER_RUNTIME grep result-too-large");
    refused(files.slice("f", 0, 10_001), "HELPER_RUNTIME slice result-too-large");
    refused(files.sort("f", SortOptions::default()), "HELPER_RUNTIME sort result-too-large");
    let fields = CutOptions { fields: vec![1], ..CutOptions::default() };
    refused(files.cut("f", &fields), "HELPER_RUNTIME cut result-too-large");
    let narrow = ground.files_with(|grants| grants.caps.output_bytes = 40);
    refused(narrow.grep("a", "f", PLAIN), "HELPER_RUNTIME grep result-too-large");
    assert_eq!(narrow.slice("f", 0, 10).unwrap().len(), 10);
}

#[test]
fn scans_are_bounded() {
    let ground = file("12345\n".repeat(100));
    let files = ground.files_with(|grants| (grants.caps.scan_bytes, grants.caps.line_bytes) = (599, 5));
    refused(files.line_count("f"), "HELPER_RUNTIME lineCount file-too-large");
    assert_eq!(files.slice("f", 97, 99).unwrap().len(), 2);
    ground.put("ws/f", "12345\r\n12345\n123456\n");
    assert_eq!(files.slice("f", 0, 2).unwrap(), ["12345", "12345"]);
    refused(files.line_count("f"), "HELPER_RUNTIME lineCount line-too-long");
    ground.put("ws/f", "1234567890");
    refused(files.line_count("f"), "HELPER_RUNTIME lineCount line-too-long");
}

#[test]
fn pathological_pattern_ends_in_time() {
    let ground = file(format!("{}!", "a".repeat(100_000)));
    for pattern in ["(a+)+$", "(a|aa)+$", "(a*)*b", "(.*a){20}b"] {
        assert!(ground.files().grep(pattern, "f", PLAIN).unwrap().is_empty(), "{pattern}");
    }
}

/// Every position of the line is a new state of the automaton, and finding all matches is quadratic.
#[test]
fn finished_call_stops_in_the_middle_of_a_line() {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let ground = file("A".repeat(1 << 20));
    let files = Files::open(&ground.grants(), || ASKED.fetch_add(1, Relaxed) >= 20).unwrap();
    refused(files.grep("[AB]*A[AB]{5000}x", "f", PLAIN), "HELPER_RUNTIME grep interrupted");
    assert_eq!(ASKED.swap(0, Relaxed), 21);
    let quadratic = CutOptions { fields: vec![1], delimiter: Some(".*[^A-Z]|[A-Z]".into()), regex: true };
    refused(files.cut("f", &quadratic), "HELPER_RUNTIME cut interrupted");
}

/// Compares the stepped automaton with the library's matcher.
#[test]
fn find_agrees_with_the_regex_library() {
    let lines = ["", "a", "aab", "foo bar", "  x  ", "äöü", "1,2;3", "abcabc", "xäbx", "a-b--c"];
    let patterns =
        ["a", "a*", "b|ab", r"\s+", "[,;]", "(?:ab|abc)c?", "^.", ".$", r"(?-u:\b)b", "ö", "x+?", "-+|a"];
    let ground = Ground::new();
    let files = ground.files();
    for pattern in patterns {
        let oracle = regex::Regex::new(pattern).unwrap();
        let mut ours = LinePattern::new(&files, pattern, LetterCase::Counts).unwrap();
        for line in lines {
            assert_eq!(ours.is_match(line).unwrap(), oracle.is_match(line), "{pattern} in {line:?}");
            for from in (0..=line.len()).filter(|at| line.is_char_boundary(*at)) {
                let expect = oracle.find_at(line, from).map(|found| (found.start(), found.end()));
                assert_eq!(ours.find(line, from).unwrap(), expect, "{pattern} in {line:?} from {from}");
            }
        }
    }
}
