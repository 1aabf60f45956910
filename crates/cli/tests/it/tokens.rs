//! Tokens on the command line: creation needs a record, revocation does not.

use std::fs;

use crate::place::{Place, Serving, token};

#[test]
fn token_is_revoked_even_if_the_journal_cannot_be_written() {
    let place = Place::new();
    let own = token(&place, &[]);
    let serving = Serving::start(&place);
    let is_let_in = || serving.ask(Some(&own), "tools/list", serde_json::json!({})).0 == 200;
    assert!(is_let_in());
    let journal = place.path().join(".toolgate/journal-commands");
    fs::rename(&journal, place.path().join("set-aside")).unwrap();
    fs::write(&journal, "no folder").unwrap();
    let said = place.fails(&["token", "revoke", "tests"], 2);
    assert!(said.contains("the token `tests` is revoked, but the journal could not record it"), "{said}");
    assert!(!is_let_in());
    place.fails(&["token", "create", "other"], 2);
    assert!(!place.ok(&["token", "list"]).contains("no expiry"), "without a record, no token");
    fs::remove_file(&journal).unwrap();
    fs::rename(place.path().join("set-aside"), &journal).unwrap();
    serving.stop();
}

#[test]
fn failed_token_creation_is_not_recorded() {
    let place = Place::new();
    token(&place, &[]);
    place.fails(&["token", "create", "tests"], 2);
    let said = place.fails(&["token", "create", "other", "--subject", " ann"], 2);
    assert!(said.contains("the subject of a token"), "{said}");
    let records = place.journal("journal-commands");
    let made: Vec<&str> = records
        .iter()
        .filter(|record| record["kind"] == "token.created")
        .filter_map(|record| record["token"].as_str())
        .collect();
    assert_eq!(made, ["tests"]);
}
