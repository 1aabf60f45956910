//! Every needle is found at every position, and nothing else is.

use super::*;

fn needle(text: &str, folds_case: bool, rule: usize) -> Needle {
    Needle { text: text.as_bytes().into(), folds_case, meaning: NeedleMeaning::Rule(rule) }
}

#[track_caller]
fn check(hay: &str, expect: &[(usize, &str)]) {
    let literals = Literals::new(vec![
        needle("ghp_", false, 0),
        needle("SG.", false, 1),
        needle("password", true, 2),
        needle("xoxb-", true, 3),
    ]);
    let mut found = Vec::new();
    literals.each(hay.as_bytes(), |at, needle| {
        found.push((at, String::from_utf8_lossy(&needle.text).into_owned()));
    });
    let found: Vec<(usize, &str)> = found.iter().map(|(at, text)| (*at, text.as_str())).collect();
    assert_eq!(found, expect);
}

#[test]
fn keywords_are_found_at_their_positions() {
    check("ghp_", &[(0, "ghp_")]);
    check("xghp_ghp_", &[(1, "ghp_"), (5, "ghp_")]);
    check("", &[]);
    check("ghp", &[]);
}

#[test]
fn case_is_respected_unless_ignored() {
    check("GHP_ PassWord PASSWORD", &[(5, "password"), (14, "password")]);
    check("XoXB- xoxb- xoxb_", &[(0, "xoxb-"), (6, "xoxb-")]);
    check("passWORD", &[(0, "password")]);
}

#[test]
fn whole_keyword_must_match() {
    check("passwort passw", &[]);
    check("passWxrd xoxb", &[]);
}

#[test]
fn three_byte_keyword_needs_a_following_token_character() {
    check("SG.a SG._ SG. SG.", &[(0, "SG."), (5, "SG.")]);
}
