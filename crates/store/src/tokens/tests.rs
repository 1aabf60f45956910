//! Tokens: shown once, stored as a hash, rejected as soon as they are revoked.

use std::{
    collections::HashSet,
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use rusqlite::Connection;
use tempfile::TempDir;

use super::{NewToken, StoredToken, TokenRole, TokenText, VerifiedToken, text};
use crate::{ApprovalLimits, StateDb};

struct TokenFile {
    _folder: TempDir,
    path: PathBuf,
}

fn place() -> TokenFile {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state").join("toolgate.db");
    TokenFile { _folder: folder, path }
}

fn open(place: &TokenFile) -> StateDb {
    StateDb::open(&place.path, ApprovalLimits { max_pending: 1, max_pending_per_caller: 1 }).unwrap()
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)
}

fn new(name: &str) -> NewToken {
    NewToken {
        name: name.to_owned(),
        subject: "ann".to_owned(),
        permissions: vec!["notes.read".to_owned(), "notes.write".to_owned()],
        role: TokenRole::Caller,
        expires: None,
    }
}

fn create(state: &StateDb, name: &str) -> (StoredToken, TokenText) {
    state.create_token(new(name), at(0)).unwrap()
}

fn verify(state: &StateDb, text: &str, seconds: u64) -> Option<VerifiedToken> {
    state.verify_token(text, at(seconds)).unwrap()
}

/// The same token with one character changed and a correct checksum.
fn altered(text: &TokenText, place: usize) -> String {
    let mut changed = text.as_str().as_bytes().to_vec();
    changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
    let mut changed = String::from_utf8(changed).unwrap();
    changed.truncate(text::UNSIGNED);
    let checksum = text::checksum(&changed);
    changed + &checksum
}

#[test]
fn token_authenticates_its_subject() {
    let place = place();
    let state = open(&place);
    let (token, text) = create(&state, "laptop");
    assert_eq!(text.as_str().len(), 74);
    assert!(text.as_str().starts_with("tg_"));
    let identity = verify(&open(&place), text.as_str(), 1).unwrap();
    let expected = VerifiedToken {
        id: token.id,
        name: "laptop".to_owned(),
        subject: "ann".to_owned(),
        permissions: vec!["notes.read".to_owned(), "notes.write".to_owned()],
        role: TokenRole::Caller,
    };
    assert_eq!(identity, expected);
    let admin = NewToken { role: TokenRole::Admin, ..new("studio") };
    let (_, text) = state.create_token(admin, at(0)).unwrap();
    assert_eq!(verify(&state, text.as_str(), 1).unwrap().role, TokenRole::Admin);
}

#[test]
fn token_secret_is_neither_on_disk_nor_in_debug_output() {
    let place = place();
    let state = open(&place);
    let (token, text) = create(&state, "laptop");
    let secret = &text.as_str()[25..68];
    assert_eq!(format!("{text:?}"), "TokenText(…)");
    assert!(!format!("{token:?}").contains(secret));
    for entry in fs::read_dir(place.path.parent().unwrap()).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
}

#[test]
fn changed_character_invalidates_the_token() {
    let place = place();
    let state = open(&place);
    let (_, text) = create(&state, "laptop");
    for place in 0..74 {
        let mut typo = text.as_str().as_bytes().to_vec();
        typo[place] ^= 1;
        assert_eq!(verify(&state, &String::from_utf8(typo).unwrap(), 1), None, "typo at {place}");
    }
    for place in 3..68 {
        assert_eq!(verify(&state, &altered(&text, place), 1), None, "with a right checksum, at {place}");
    }
    assert!(verify(&state, text.as_str(), 1).is_some());
}

#[test]
fn malformed_token_does_not_reach_the_database() {
    let place = place();
    let state = open(&place);
    let (_, text) = create(&state, "laptop");
    Connection::open(&place.path).unwrap().execute_batch("DROP TABLE tokens").unwrap();
    let text = text.as_str();
    let with_umlauts = format!("tg_{}", "ü".repeat(36)) + "x";
    let no_tokens = [
        "",
        "tg_",
        &text[..73],
        &format!("{text} "),
        &format!(" {text}"),
        &text.to_uppercase(),
        &with_umlauts,
    ];
    for no_token in no_tokens {
        assert_eq!(verify(&state, no_token, 1), None, "{no_token:?}");
    }
    state.verify_token(text, at(1)).expect_err("an unreadable store is an error");
}

#[test]
fn expiry_is_exact() {
    let place = place();
    let state = open(&place);
    let (_, text) = state.create_token(NewToken { expires: Some(at(100)), ..new("short") }, at(0)).unwrap();
    assert!(verify(&state, text.as_str(), 99).is_some());
    assert_eq!(verify(&state, text.as_str(), 100), None);
}

#[test]
fn revoked_or_expired_token_is_found_by_id() {
    let place = place();
    let (state, other) = (open(&place), open(&place));
    let (token, _) = create(&state, "laptop");
    let is_good = |id: &str, seconds| state.is_token_good(id, at(seconds)).unwrap();
    assert!(is_good(&token.id, 1));
    assert!(!is_good("laptop", 1), "a name is no id");
    assert!(!is_good("nobody", 1));
    other.revoke_token("laptop", at(2)).unwrap().unwrap();
    assert!(!is_good(&token.id, 2));
    let (brief, _) = state.create_token(NewToken { expires: Some(at(9)), ..new("brief") }, at(3)).unwrap();
    assert!(is_good(&brief.id, 8) && !is_good(&brief.id, 9));
}

#[test]
fn revoked_token_is_rejected_at_once_in_every_process() {
    let place = place();
    let (state, other) = (open(&place), open(&place));
    let (token, text) = create(&state, "laptop");
    assert!(verify(&state, text.as_str(), 1).is_some());
    let revoked = other.revoke_token("laptop", at(2)).unwrap().unwrap();
    assert_eq!((revoked.id.as_str(), revoked.revoked), (token.id.as_str(), Some(at(2))));
    assert_eq!(verify(&state, text.as_str(), 2), None);
    assert_eq!(verify(&state, text.as_str(), 0), None, "even if the clock is set back");
    assert_eq!(other.revoke_token("laptop", at(3)).unwrap(), None);
    assert_eq!(other.revoke_token("nobody", at(3)).unwrap(), None);

    let (second, second_text) = create(&state, "laptop");
    assert_eq!(verify(&state, text.as_str(), 3), None, "the name is the same, the token is not");
    state.revoke_token(&second.id, at(4)).unwrap().unwrap();
    assert_eq!(verify(&state, second_text.as_str(), 4), None);
}

/// The cache must not outlive a change of the token.
#[test]
fn cached_token_is_read_again_after_every_change() {
    let place = place();
    let (state, other) = (open(&place), open(&place));
    let commits = place.path.with_file_name("toolgate.db-commits");
    for round in 0..50 {
        let name = format!("laptop {round}");
        let (_, text) = create(&other, &name);
        for _ in 0..3 {
            assert!(verify(&state, text.as_str(), 1).is_some());
        }
        match round % 4 {
            // The commit counter is gone or is another file, so the version is unknown.
            1 => fs::remove_file(&commits).unwrap(),
            2 => fs::write(&commits, "").unwrap(),
            _ => {}
        }
        other.revoke_token(&name, at(2)).unwrap().unwrap();
        assert_eq!(verify(&state, text.as_str(), 2), None, "{name}");
        assert_eq!(verify(&other, text.as_str(), 2), None, "{name}");
    }
}

#[test]
fn change_by_another_program_invalidates_the_cache() {
    let place = place();
    let state = open(&place);
    let (token, text) = create(&state, "laptop");
    assert!(verify(&state, text.as_str(), 1).is_some());
    let by_hand = Connection::open(&place.path).unwrap();
    by_hand.execute("UPDATE tokens SET revoked = 1 WHERE id = ?1", [&token.id]).unwrap();
    let patience = std::time::Instant::now() + Duration::from_secs(20);
    while verify(&state, text.as_str(), 2).is_some() {
        assert!(std::time::Instant::now() < patience, "it is still good");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn cached_token_needs_its_secret_and_expires() {
    let place = place();
    let state = open(&place);
    let (_, text) = state.create_token(NewToken { expires: Some(at(100)), ..new("laptop") }, at(0)).unwrap();
    assert!(verify(&state, text.as_str(), 1).is_some());
    assert_eq!(verify(&state, &altered(&text, 40), 1), None);
    assert!(verify(&state, text.as_str(), 99).is_some());
    assert_eq!(verify(&state, text.as_str(), 100), None);
}

/// If the state cannot be read, the cache is not used.
#[test]
fn cache_is_not_used_if_the_state_is_gone() {
    let place = place();
    let state = open(&place);
    let (_, text) = create(&state, "laptop");
    assert!(verify(&state, text.as_str(), 1).is_some());
    fs::remove_file(&place.path).unwrap();
    assert!(state.verify_token(text.as_str(), at(1)).is_err());
}

#[test]
fn revoking_by_id_wins_over_a_token_of_that_name() {
    let place = place();
    let state = open(&place);
    let (token, text) = create(&state, "laptop");
    let (_, decoy) = create(&state, &token.id);
    state.revoke_token(&token.id, at(1)).unwrap().unwrap();
    assert_eq!(verify(&state, text.as_str(), 1), None);
    assert!(verify(&state, decoy.as_str(), 1).is_some());
}

#[test]
fn names_and_subjects_are_sane_and_names_unique() {
    let place = place();
    let state = open(&place);
    create(&state, "laptop");
    let problem = |new: NewToken| state.create_token(new, at(0)).unwrap_err().to_string();
    assert_eq!(problem(new("laptop")), "a token named `laptop` exists; revoke it, or choose another name");
    for bad in ["", "  ", "a\nb", "\u{1b}[31m", &"x".repeat(201)] {
        assert!(problem(new(bad)).starts_with("the name of a token"), "{bad:?}");
        let bad_subject = NewToken { subject: bad.to_owned(), ..new("fine") };
        assert!(problem(bad_subject).starts_with("the subject of a token"), "{bad:?}");
    }
    assert_eq!(state.list_tokens().unwrap().len(), 1);
}

#[test]
fn expired_token_frees_its_name_and_is_deleted_later() {
    let place = place();
    let state = open(&place);
    let (_, text) = state.create_token(NewToken { expires: Some(at(100)), ..new("laptop") }, at(0)).unwrap();
    state.create_token(new("laptop"), at(99)).unwrap_err();
    state.create_token(new("laptop"), at(100)).unwrap();
    assert_eq!(verify(&state, text.as_str(), 50), None, "even if the clock is set back");
    assert_eq!(state.list_tokens().unwrap().len(), 2);
    let month = 30 * 24 * 3600;
    state.create_token(new("desktop"), at(month + 101)).unwrap();
    let names: Vec<String> = state.list_tokens().unwrap().into_iter().map(|token| token.name).collect();
    assert_eq!(names, ["desktop", "laptop"], "one laptop is left");
}

#[test]
fn last_use_is_stored_to_the_minute() {
    let place = place();
    let state = open(&place);
    let (_, text) = create(&state, "laptop");
    let last_used = || state.list_tokens().unwrap()[0].last_used;
    assert_eq!(last_used(), None);
    verify(&state, text.as_str(), 10).unwrap();
    assert_eq!(last_used(), Some(at(10)));
    verify(&state, text.as_str(), 69).unwrap();
    assert_eq!(last_used(), Some(at(10)));
    verify(&state, text.as_str(), 70).unwrap();
    drop(state);
    assert_eq!(open(&place).list_tokens().unwrap()[0].last_used, Some(at(70)), "also at the end");
}

#[test]
fn tokens_are_unique() {
    let made: HashSet<String> =
        (0..200).map(|_| TokenText::random().unwrap().0.as_str().to_owned()).collect();
    assert_eq!(made.len(), 200);
    assert!(made.iter().all(|token| text::parse(token).is_some()));
}

/// The server would reject such a name at login.
#[test]
fn deceptive_name_or_subject_is_rejected() {
    let place = place();
    let state = open(&place);
    for text in ["", " ", "me ", "\u{a0}me", "me\n", "m\u{202e}e", "me\u{200b}", "m\0e", &"x".repeat(201)] {
        let named = NewToken { name: text.to_owned(), ..new("laptop") };
        let meant = NewToken { subject: text.to_owned(), ..new("laptop") };
        for (what, new) in [("name", named), ("subject", meant)] {
            let problem = state.create_token(new, at(0)).unwrap_err().to_string();
            assert!(problem.contains(&format!("the {what} of a token")), "{text:?}: {problem}");
        }
    }
    for (at_nr, text) in ["me", "me@example.com", "auth0|12 34", "J\u{fc}rgen"].into_iter().enumerate() {
        let new = NewToken { subject: text.to_owned(), ..new(&format!("laptop-{at_nr}")) };
        assert!(state.create_token(new, at(0)).is_ok(), "{text}");
    }
}
