use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

fn order(tag: &str, settings: &str, one: &str, other: &str) -> Result<HelperAnswer, HelperError> {
    compare(&json!([tag, settings, one, other]).to_string())
}

#[track_caller]
fn check(tag: &str, settings: &str, one: &str, other: &str, expect: i8) {
    assert_eq!(order(tag, settings, one, other), Ok(HelperAnswer::Json(expect.to_string())), "{one} {other}");
    assert_eq!(
        order(tag, settings, other, one),
        Ok(HelperAnswer::Json((-expect).to_string())),
        "{other} {one}"
    );
}

#[test]
fn alphabets_differ_by_language() {
    check("de", "v---", "ä", "z", -1);
    check("sv", "v---", "ä", "z", 1);
    check("en", "v---", "_", "-", -1);
    check("en", "v1--", "a9", "a10", -1);
    check("en", "v-u-", "A", "a", -1);
    check("en", "v--1", "co-op", "coop", 0);
    check("en", "b---", "É", "e", 0);
}

#[test]
fn locale_decides_about_defaults() {
    let resolved = |tag: &str, settings: &str| resolve(&json!([tag, settings]).to_string());
    assert_eq!(resolved("en", "v---"), Ok(HelperAnswer::Json(r#"[false,"false",false]"#.to_owned())));
    assert_eq!(resolved("da", "v---"), Ok(HelperAnswer::Json(r#"[false,"upper",false]"#.to_owned())));
    assert_eq!(resolved("th", "v---"), Ok(HelperAnswer::Json(r#"[false,"false",true]"#.to_owned())));
    assert_eq!(resolved("en-u-kn", "v---"), Ok(HelperAnswer::Json(r#"[true,"false",false]"#.to_owned())));
    assert_eq!(resolved("en-u-kn", "v0l1"), Ok(HelperAnswer::Json(r#"[false,"lower",true]"#.to_owned())));
}

#[test]
fn invalid_locales_get_no_answer() {
    let long = format!("en-x-{}", "a-".repeat(1 << 16));
    for tag in ["", "e", "en_", "en-", "*", "en-u-kn-\u{0}", "de-1996-1996", "../../etc", long.as_str()] {
        assert_eq!(order(tag, "v---", "a", "b"), Ok(HelperAnswer::Nothing), "{tag:.40}");
        assert_eq!(resolve(&json!([tag, "v---"]).to_string()), Ok(HelperAnswer::Nothing), "{tag:.40}");
    }
}

#[test]
fn malformed_questions_are_rejected() {
    for question in ["", "[]", "[1,2,3,4]", "{}", r#"["en","v---","a"]"#] {
        assert_eq!(compare(question).unwrap_err().reason, "bad-question");
        assert_eq!(resolve(question).unwrap_err().reason, "bad-question");
    }
    check("en", "", "a", "b", -1);
    check("en", "\u{301}????????", "a", "b", -1);
}

#[test]
fn texts_beyond_the_limit_are_rejected() {
    let half = "a".repeat(MAX_BYTES / 2);
    check("en", "v---", &half, &half, 0);
    assert_eq!(order("en", "v---", &half, &(half.clone() + "a")).unwrap_err().reason, "text-too-long");
}

/// Without splitting, each of these takes many seconds.
#[test]
fn long_runs_take_linear_time() {
    for (tag, run) in [("da", "a"), ("en", "1"), ("en", "\u{301}"), ("vi", "\u{301}\u{323}"), ("th", "เ")] {
        let text = run.repeat(MAX_BYTES / 4 / run.len());
        let started = Instant::now();
        check(tag, "v1--", &text, &(text.clone() + "x"), -1);
        assert!(started.elapsed() < Duration::from_secs(20), "{tag} {run}: {:?}", started.elapsed());
    }
}

/// A letter at the end outranks an accent or the case at the beginning, as in short texts.
#[test]
fn letters_of_long_texts_come_before_accents() {
    let middle = "x".repeat(3 * PART);
    check("en", "v---", &format!("é{middle}a"), &format!("e{middle}b"), -1);
    check("en", "v---", &format!("é{middle}a"), &format!("e{middle}a"), 1);
    check("en", "b---", &format!("É{middle}A"), &format!("e{middle}a"), 0);
    check("en", "v---", &middle, &format!("{middle}a"), -1);
}

proptest! {
    #[test]
    fn comparison_is_antisymmetric(one in "\\PC{0,40}", other in "\\PC{0,40}", tag in "(en|da|th|ja|zh|vi|fr-CA)") {
        let there = order(&tag, "v1--", &one, &other).unwrap();
        let back = order(&tag, "v1--", &other, &one).unwrap();
        let opposite = match there {
            HelperAnswer::Json(text) if text == "1" => "-1",
            HelperAnswer::Json(text) if text == "-1" => "1",
            _ => "0",
        };
        prop_assert_eq!(back, HelperAnswer::Json(opposite.to_owned()));
    }
}
