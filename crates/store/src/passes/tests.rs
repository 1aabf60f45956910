//! Passes: the latest of each tool, as it was written.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolgate_gate::{PassStore as _, StoredPass};
use toolgate_policy::{PassOutcome, PassRecord};

use crate::{ApprovalLimits, StateDb};

fn pass(digest: &str, outcome: PassOutcome, observed: Value) -> StoredPass {
    StoredPass {
        name: Some("say it".to_owned()),
        record: PassRecord {
            document_digest: digest.to_owned(),
            policy_digest: "sha256:policy".to_owned(),
            outcome,
        },
        at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
        observed,
        is_published: false,
        is_withdrawn: digest == "2",
        accepted: if digest == "2" { vec!["LINT_A".to_owned(), "LINT_B".to_owned()] } else { Vec::new() },
        accepts_draft: digest == "2",
    }
}

fn put(state: &StateDb, tool_id: &str, pass: &StoredPass) {
    state.revise(tool_id, &|_| Ok(pass.clone())).unwrap();
}

#[test]
fn latest_pass_of_each_tool_is_stored_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state").join("toolgate.db");
    let limits = ApprovalLimits { max_pending: 1, max_pending_per_caller: 1 };
    let state = StateDb::open(&path, limits).unwrap();
    assert_eq!(state.latest("a"), Ok(None));
    let failed =
        pass("1", PassOutcome::Failed { error: "it's '\"; --\nbroken".to_owned() }, json!({"hosts": []}));
    let mut passed =
        pass("2", PassOutcome::Passed, json!({"hosts": ["ünï.example"], "memory": 1.5e3, "z": null}));
    put(&state, "b", &failed);
    put(&state, "a", &failed);
    put(&state, "a", &passed);
    assert_eq!(state.latest("a").unwrap().as_ref(), Some(&passed));
    (passed.is_published, passed.name) = (true, None);
    put(&state, "a", &passed);
    drop(state);

    let state = StateDb::open(&path, limits).unwrap();
    let expected = vec![("a".to_owned(), passed), ("b".to_owned(), failed)];
    assert_eq!(state.all_passes().unwrap(), expected);
    state.forget("a").unwrap();
    state.forget("never seen").unwrap();
    assert_eq!(state.latest("a"), Ok(None));
    assert_eq!(state.all_passes().unwrap().len(), 1);
}

/// A revision starts from the latest record, even if another process wrote it just before.
#[test]
fn revision_starts_from_the_latest_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state").join("toolgate.db");
    let limits = ApprovalLimits { max_pending: 1, max_pending_per_caller: 1 };
    let (here, elsewhere) = (StateDb::open(&path, limits).unwrap(), StateDb::open(&path, limits).unwrap());
    let first = StoredPass { is_published: true, ..pass("1", PassOutcome::Passed, json!({})) };
    let made = here.revise("a", &|latest| {
        assert_eq!(latest, None);
        Ok(first.clone())
    });
    assert_eq!(made.as_ref(), Ok(&first));
    let taken_back =
        elsewhere.revise("a", &|latest| Ok(StoredPass { is_published: false, ..latest.unwrap() }));
    let second = pass("2", PassOutcome::Passed, json!({}));
    let kept = here.revise("a", &|latest| {
        assert_eq!(latest.as_ref(), taken_back.as_ref().ok());
        Ok(StoredPass { is_published: latest.unwrap().is_published, ..second.clone() })
    });
    assert_eq!(kept.as_ref(), Ok(&second));
    let not_made = here.revise("a", &|_| Err("the disk is full".to_owned()));
    assert_eq!(not_made, Err("the disk is full".to_owned()));
    assert_eq!(elsewhere.latest("a"), Ok(Some(second)), "it stays as it was");
    assert!(here.revise("b", &|_| Err(String::new())).is_err());
    assert_eq!(here.latest("b"), Ok(None), "nothing is created");
}

#[test]
fn publishing_a_name_under_another_id_unpublishes_the_earlier_one() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ApprovalLimits { max_pending: 1, max_pending_per_caller: 1 };
    let state = StateDb::open(&folder.path().join("state.db"), limits).unwrap();
    let published =
        |digest| StoredPass { is_published: true, ..pass(digest, PassOutcome::Passed, json!({})) };
    let other = StoredPass { name: Some("other".to_owned()), ..published("0") };
    put(&state, "other", &other);
    put(&state, "first", &published("1"));
    put(&state, "second", &pass("3", PassOutcome::Passed, json!({})));
    let is_published = |id| state.latest(id).unwrap().unwrap().is_published;
    assert!(is_published("first"), "a pass alone changes nothing");
    put(&state, "second", &published("3"));
    assert!(is_published("second") && is_published("other") && !is_published("first"));
    assert!(!state.latest("first").unwrap().unwrap().is_withdrawn, "nobody unpublished it by name");
}

#[test]
fn unpublished_name_is_found_under_another_id() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ApprovalLimits { max_pending: 1, max_pending_per_caller: 1 };
    let state = StateDb::open(&folder.path().join("state.db"), limits).unwrap();
    put(&state, "first", &pass("1", PassOutcome::Passed, json!({})));
    assert_eq!(state.is_name_withdrawn("say it", "second"), Ok(false));
    let withdrawn = StoredPass { is_withdrawn: true, ..pass("1", PassOutcome::Passed, json!({})) };
    put(&state, "first", &withdrawn);
    assert_eq!(state.is_name_withdrawn("say it", "second"), Ok(true));
    assert_eq!(state.is_name_withdrawn("say it", "first"), Ok(false), "its own record is read by id");
    assert_eq!(state.is_name_withdrawn("say", "second"), Ok(false));
}

#[test]
fn last_publication_is_found_by_id_and_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ApprovalLimits { max_pending: 1, max_pending_per_caller: 1 };
    let state = StateDb::open(&folder.path().join("state").join("toolgate.db"), limits).unwrap();
    assert_eq!(state.last_publication("a", "say"), Ok(None));
    state.note_publication("a", "say", "{\"x\":1}").unwrap();
    state.note_publication("b", "other", "{}").unwrap();
    state.note_publication("a", "say", "{\"x\":2}").unwrap();
    assert_eq!(state.last_publication("a", "renamed"), Ok(Some("{\"x\":2}".to_owned())));
    assert_eq!(state.last_publication("new-id", "say"), Ok(Some("{\"x\":2}".to_owned())));
    assert_eq!(state.last_publication("b", "say"), Ok(Some("{}".to_owned())));
}

#[test]
fn changed_passes_are_known_by_number() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ApprovalLimits { max_pending: 1, max_pending_per_caller: 1 };
    let state = StateDb::open(&folder.path().join("state").join("toolgate.db"), limits).unwrap();
    let ids = |after: i64| {
        let changes = state.passes_changed_after(after).unwrap();
        let ids: Vec<String> = changes.tools.into_iter().map(|(id, _)| id).collect();
        (ids, changes.last)
    };
    assert_eq!(ids(0), (vec![], 0));
    let mut published = pass("1", PassOutcome::Passed, json!({}));
    published.is_published = true;
    put(&state, "a", &published);
    put(&state, "b", &pass("2", PassOutcome::Passed, json!({})));
    let (all, seen) = ids(0);
    assert_eq!(all, ["a", "b"]);
    assert_eq!(ids(seen), (vec![], seen));
    assert_eq!(state.published_digests().unwrap(), [("a".to_owned(), "1".to_owned())].into());
    // Publishing also unpublishes the other tool of the same name.
    put(&state, "c", &published);
    let (changed, seen) = ids(seen);
    assert_eq!(changed, ["a", "c"]);
    state.forget("c").unwrap();
    let (changed, after) = ids(seen);
    assert_eq!(changed, ["c"]);
    assert!(after > seen, "the last row is replaced by a higher number");
    assert!(state.published_digests().unwrap().is_empty());
}
