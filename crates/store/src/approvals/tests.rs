//! The approval queue: requests, decisions, and that an approval is used once and only for its call.

use std::{
    path::PathBuf,
    sync::Barrier,
    time::{Duration, SystemTime},
};

use rusqlite::Connection;
use tempfile::TempDir;
use toolgate_gate::{
    Approval, ApprovalError, ApprovalId, ApprovalQueue as _, ApprovalState, ApprovalStore as _, Binding,
    Decider, HiddenArguments, NewApproval, QueueLimit, RememberScope, Trust,
};

use crate::{ApprovalLimits, StateDb};

pub(super) struct QueueFile {
    _folder: TempDir,
    path: PathBuf,
}

impl QueueFile {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state").join("toolgate.db");
        Self { _folder: folder, path }
    }

    pub(super) fn open(&self) -> StateDb {
        StateDb::open(&self.path, LIMITS).unwrap()
    }
}

pub(super) const LIMITS: ApprovalLimits = ApprovalLimits { max_pending: 8, max_pending_per_caller: 4 };

/// Seconds since the start of the test clock.
pub(super) fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)
}

fn binding(caller: &str, arguments: &str) -> Binding {
    Binding {
        caller: caller.to_owned(),
        tool: "notes.delete".to_owned(),
        tool_digest: "sha256:tool".to_owned(),
        arguments_digest: arguments.to_owned(),
        policy_digest: "sha256:policy".to_owned(),
    }
}

pub(super) fn question(binding: Binding, created: u64, expires: u64) -> NewApproval {
    NewApproval {
        quota: binding.caller.clone(),
        binding,
        prompt: "Delete `notes`? '); DROP TABLE approvals; --\0 ünï".to_owned(),
        arguments: Some(r#"{"name":"ünï'"}"#.to_owned()),
        hidden: HiddenArguments::default(),
        remembers: None,
        because: vec!["risk".to_owned(), "policy".to_owned()],
        risk: "L4".to_owned(),
        created: at(created),
        expires: at(expires),
    }
}

fn ask(state: &StateDb, caller: &str, arguments: &str) -> Approval {
    state.open(question(binding(caller, arguments), 0, 100), at(0)).unwrap()
}

fn approve(state: &StateDb, id: &ApprovalId) -> Approval {
    state.decide(id, ApprovalState::Approved, &Decider::Operator("olga"), Some("looks right"), at(1)).unwrap()
}

fn unknown() -> ApprovalId {
    ApprovalId::from_random([7; 16])
}

#[test]
fn request_is_stored_unchanged() {
    let place = QueueFile::new();
    let state = place.open();
    let asked = ask(&state, "ann", "a");
    let read = place.open().get(&asked.id, at(5)).unwrap();
    assert_eq!(format!("{read:?}"), format!("{asked:?}"));
    assert_eq!(read.question.prompt, question(binding("ann", "a"), 0, 100).prompt);
    assert_eq!(read.question.arguments.as_deref(), Some(r#"{"name":"ünï'"}"#));
    assert_eq!(read.question.because, ["risk", "policy"]);
    assert_eq!((read.question.created, read.question.expires), (at(0), at(100)));
    assert_eq!((read.state, read.decided_by, read.note), (ApprovalState::Pending, None, None));
}

#[test]
fn same_call_opens_one_request() {
    let place = QueueFile::new();
    let state = place.open();
    let first = ask(&state, "ann", "a");
    assert_eq!(ask(&place.open(), "ann", "a").id, first.id);
    assert_ne!(ask(&state, "ann", "b").id, first.id);
    assert_ne!(ask(&state, "bob", "a").id, first.id);
    approve(&state, &first.id);
    assert_ne!(ask(&state, "ann", "a").id, first.id, "an answered question is not asked again");
}

#[test]
fn approval_is_used_once_with_and_without_its_id() {
    let place = QueueFile::new();
    let state = place.open();
    for arguments in ["with", "without"] {
        let call = binding("ann", arguments);
        let asked = ask(&state, "ann", arguments);
        let id = (arguments == "with").then_some(&asked.id);
        assert_eq!(state.consume(&call, id, at(1)), Ok(None), "not decided yet");
        approve(&state, &asked.id);
        let spent = state.consume(&call, id, at(2)).unwrap().unwrap();
        assert_eq!((spent.id, spent.decided_by.as_str()), (asked.id.clone(), "olga"));
        assert_eq!(state.consume(&call, None, at(2)), Ok(None));
        let again = Err(ApprovalError::NotPending(ApprovalState::Used));
        assert_eq!(state.consume(&call, Some(&asked.id), at(2)), again);
        assert_eq!(place.open().get(&asked.id, at(500)).unwrap().state, ApprovalState::Used);
    }
}

#[test]
fn approval_for_another_call_is_not_used() {
    let place = QueueFile::new();
    let state = place.open();
    let asked = ask(&state, "ann", "a");
    approve(&state, &asked.id);
    let call = binding("ann", "a");
    let text = |change: &str| change.to_owned();
    let others = [
        Binding { caller: text("bob"), ..call.clone() },
        Binding { caller: text("ANN"), ..call.clone() },
        Binding { caller: text("ann "), ..call.clone() },
        Binding { caller: text("ann\0"), ..call.clone() },
        Binding { tool: text("notes.read"), ..call.clone() },
        Binding { tool_digest: text("sha256:edited"), ..call.clone() },
        Binding { arguments_digest: text("b"), ..call.clone() },
        Binding { arguments_digest: text(""), ..call.clone() },
        Binding { policy_digest: text("sha256:loosened"), ..call.clone() },
    ];
    for other in &others {
        assert_eq!(state.consume(other, None, at(2)), Ok(None), "{other:?}");
        assert_eq!(state.consume(other, Some(&asked.id), at(2)), Err(ApprovalError::OtherCall), "{other:?}");
    }
    assert!(state.consume(&call, None, at(2)).unwrap().is_some(), "and none of them has used it up");
    let used = state.consume(&others[0], Some(&asked.id), at(2));
    assert_eq!(used, Err(ApprovalError::OtherCall), "another caller must not learn its state");
}

#[test]
fn denied_unknown_and_expired_approvals_are_not_used() {
    let place = QueueFile::new();
    let state = place.open();
    let call = binding("ann", "a");
    assert_eq!(state.consume(&call, Some(&unknown()), at(1)), Err(ApprovalError::Unknown));
    assert_eq!(state.get(&unknown(), at(1)).unwrap_err(), ApprovalError::Unknown);
    let asked = ask(&state, "ann", "a");
    let denied =
        state.decide(&asked.id, ApprovalState::Denied, &Decider::Operator("olga"), None, at(1)).unwrap();
    assert_eq!((denied.state, denied.decided_at), (ApprovalState::Denied, Some(at(1))));
    assert_eq!(state.consume(&call, None, at(2)), Ok(None));
    let refused = Err(ApprovalError::NotPending(ApprovalState::Denied));
    assert_eq!(state.consume(&call, Some(&asked.id), at(2)), refused);

    let late = ask(&state, "ann", "late");
    approve(&state, &late.id);
    assert_eq!(state.consume(&binding("ann", "late"), Some(&late.id), at(100)), Err(ApprovalError::Expired));
    assert_eq!(
        state.consume(&binding("ann", "late"), None, at(99)),
        Ok(None),
        "even if the clock is set back"
    );
    assert_eq!(state.get(&late.id, at(99)).unwrap().state, ApprovalState::Expired);
    let born_late = state.open(question(binding("ann", "b"), 0, 100), at(100)).unwrap_err();
    assert_eq!(born_late, ApprovalError::Expired);
}

#[test]
fn request_is_decided_once_and_before_it_expires() {
    let place = QueueFile::new();
    let state = place.open();
    let asked = ask(&state, "ann", "a");
    let decide = |id: &ApprovalId, to, seconds| {
        state.decide(id, to, &Decider::Operator("eve"), None, at(seconds)).unwrap_err()
    };
    for nonsense in [ApprovalState::Pending, ApprovalState::Used, ApprovalState::Expired] {
        let error = decide(&asked.id, nonsense, 1).to_string();
        assert!(error.contains("approved or denied"), "{error}");
    }
    assert_eq!(decide(&unknown(), ApprovalState::Approved, 1), ApprovalError::Unknown);
    approve(&state, &asked.id);
    let decided = ApprovalError::NotPending(ApprovalState::Approved);
    assert_eq!(decide(&asked.id, ApprovalState::Denied, 2), decided);
    assert_eq!(decide(&asked.id, ApprovalState::Approved, 2), decided);
    let read = state.get(&asked.id, at(2)).unwrap();
    assert_eq!((read.decided_by.as_deref(), read.note.as_deref()), (Some("olga"), Some("looks right")));
    let late = ask(&state, "ann", "late");
    assert_eq!(decide(&late.id, ApprovalState::Approved, 100), ApprovalError::Expired);
}

#[test]
fn queue_is_limited_per_caller_and_in_total() {
    let place = QueueFile::new();
    let state = place.open();
    let full = |caller: &str| state.open(question(binding(caller, "more"), 0, 100), at(0)).unwrap_err();
    for arguments in ["1", "2", "3", "4"] {
        ask(&state, "ann", arguments);
    }
    assert_eq!(full("ann"), ApprovalError::QueueFull(QueueLimit::OfCaller(4)));
    ask(&state, "ann", "4");
    for caller in ["bob", "cyd", "dan", "eve"] {
        ask(&state, caller, "1");
    }
    assert_eq!(full("fay"), ApprovalError::QueueFull(QueueLimit::InAll(8)));
    state.open(question(binding("ann", "more"), 100, 200), at(100)).expect("expired requests do not count");
}

#[test]
fn list_is_limited_filtered_and_newest_first() {
    let place = QueueFile::new();
    let state = place.open();
    let ids: Vec<ApprovalId> =
        ["1", "2", "3"].iter().map(|arguments| ask(&state, "ann", arguments).id).collect();
    approve(&state, &ids[1]);
    let list = |filter, limit, seconds| -> Vec<ApprovalId> {
        state.list(filter, limit, at(seconds)).unwrap().into_iter().map(|approval| approval.id).collect()
    };
    let [first, second, third] = [ids[0].clone(), ids[1].clone(), ids[2].clone()];
    assert_eq!(list(None, 10, 1), [third.clone(), second.clone(), first.clone()]);
    assert_eq!(list(None, 1, 1), std::slice::from_ref(&third));
    assert_eq!(list(Some(ApprovalState::Pending), usize::MAX, 1), [third, first]);
    assert_eq!(list(Some(ApprovalState::Approved), 10, 1), [second]);
    assert_eq!(list(Some(ApprovalState::Expired), 10, 100).len(), 3);
    assert_eq!(list(None, 0, 1), []);
}

#[test]
fn next_page_starts_before_the_last_row_in_any_state() {
    let place = QueueFile::new();
    let state = place.open();
    let ids: Vec<ApprovalId> =
        ["1", "2", "3", "4"].iter().map(|arguments| ask(&state, "ann", arguments).id).collect();
    let before = |filter, id: &ApprovalId, limit| -> Vec<ApprovalId> {
        let found = state.list_before(filter, id, limit, at(1)).unwrap();
        found.into_iter().map(|approval| approval.id).collect()
    };
    let [first, second, third, fourth] = [0, 1, 2, 3].map(|at: usize| ids[at].clone());
    assert_eq!(before(None, &fourth, 2), [third.clone(), second.clone()]);
    assert_eq!(before(None, &second, 2), std::slice::from_ref(&first));
    assert_eq!(before(None, &first, 2), []);
    approve(&state, &third);
    let pending = Some(ApprovalState::Pending);
    assert_eq!(before(pending, &third, 10), [second, first], "it is not pending itself");
    assert_eq!(before(Some(ApprovalState::Approved), &fourth, 10), [third]);
    assert_eq!(state.list_before(None, &unknown(), 10, at(1)).unwrap_err(), ApprovalError::Unknown);
}

#[test]
fn concurrent_threads_use_an_approval_once() {
    let place = QueueFile::new();
    let handles = [place.open(), place.open()];
    for round in 0..20_u32 {
        let call = binding("ann", &round.to_string());
        let asked = handles[0].open(question(call.clone(), 0, 100), at(0)).unwrap();
        approve(&handles[0], &asked.id);
        let start = Barrier::new(16);
        let wins: usize = std::thread::scope(|scope| {
            let spenders: Vec<_> = (0..16)
                .map(|number: usize| {
                    let (state, call, id, start) = (&handles[number % 2], &call, &asked.id, &start);
                    scope.spawn(move || {
                        start.wait();
                        let id = (number % 4 < 2).then_some(id);
                        match state.consume(call, id, at(2)) {
                            Ok(Some(_)) => 1,
                            Ok(None) | Err(ApprovalError::NotPending(ApprovalState::Used)) => 0,
                            Err(other) => panic!("{other}"),
                        }
                    })
                })
                .collect();
            spenders.into_iter().map(|spender| spender.join().unwrap()).sum()
        });
        assert_eq!(wins, 1, "round {round}");
    }
}

#[test]
fn concurrent_requests_for_one_call_share_an_approval() {
    let place = QueueFile::new();
    let handles = [place.open(), place.open()];
    let ids: std::collections::HashSet<ApprovalId> = std::thread::scope(|scope| {
        let askers: Vec<_> = (0..8)
            .map(|number: usize| {
                scope.spawn({
                    let state = &handles[number % 2];
                    move || ask(state, "ann", "a").id
                })
            })
            .collect();
        askers.into_iter().map(|asker| asker.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1);
}

#[test]
fn approved_row_without_decider_is_not_used() {
    let place = QueueFile::new();
    let state = place.open();
    let asked = ask(&state, "ann", "a");
    let forge = |sql: &str| Connection::open(&place.path).unwrap().execute(sql, []);
    forge("UPDATE approvals SET state = 'approved'").unwrap_err();
    forge("UPDATE approvals SET state = 'sure'").unwrap_err();
    assert_eq!(state.consume(&binding("ann", "a"), Some(&asked.id), at(1)), Ok(None));
    forge("UPDATE approvals SET because = 'no JSON'").unwrap();
    let unreadable = state.get(&asked.id, at(1)).unwrap_err().to_string();
    assert!(unreadable.ends_with("the reasons of an approval cannot be read"), "{unreadable}");
}

#[test]
fn overwritten_file_approves_nothing() {
    let place = QueueFile::new();
    let state = place.open();
    let asked = ask(&state, "ann", "a");
    for size in [0, 100, 4096, 100_000] {
        std::fs::write(&place.path, vec![b'1'; size]).unwrap();
        for id in [None, Some(&asked.id)] {
            assert!(!matches!(state.consume(&binding("ann", "a"), id, at(1)), Ok(Some(_))), "{size} bytes");
        }
    }
}

#[test]
fn old_finished_approvals_are_pruned() {
    let place = QueueFile::new();
    let state = place.open();
    let month = 30 * 24 * 3600;
    let old = ask(&state, "ann", "old");
    let kept = state.open(question(binding("ann", "kept"), 0, 200), at(0)).unwrap();
    state.decide(&old.id, ApprovalState::Denied, &Decider::Operator("olga"), None, at(1)).unwrap();
    // Pruning happens only every `PRUNE_EVERY` requests.
    for number in 0..super::PRUNE_EVERY {
        let now = month + 100;
        let asked = state.open(question(binding("bob", &number.to_string()), now, now + 9), at(now)).unwrap();
        state.decide(&asked.id, ApprovalState::Denied, &Decider::Operator("olga"), None, at(now)).unwrap();
    }
    assert_eq!(state.get(&old.id, at(month + 100)).unwrap_err(), ApprovalError::Unknown);
    let read = state.get(&kept.id, at(month + 100)).unwrap();
    assert_eq!(read.state, ApprovalState::Expired, "finished only when it was seen to have expired");
}

/// Inserts many rows of `bob`.
fn flood(place: &QueueFile, state: &str, expires: u64) {
    let forge = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 + 50)
        INSERT INTO approvals (id, state, caller, quota, tool, tool_digest, arguments_digest, policy_digest, prompt, because,
        risk, created, expires, decided_by, decided_at, finished)
        SELECT printf('apr_%032x', i), '{state}', 'bob', 'bob', '', '', '', '', '', '[]', '', 0, ?2, 'client', 0,
        1700000000000 + i FROM n"
    );
    let expires = crate::state::to_ms(at(expires));
    Connection::open(&place.path).unwrap().execute(&forge, [super::MAX_PER_CALLER, expires]).unwrap();
}

fn deny(state: &StateDb, id: &ApprovalId) {
    state.decide(id, ApprovalState::Denied, &Decider::Operator("olga"), None, at(0)).unwrap();
}

#[test]
fn finished_approvals_are_limited_per_caller() {
    let place = QueueFile::new();
    let state = place.open();
    let (waits, spent) = (ask(&state, "ann", "waits"), ask(&state, "ann", "spent"));
    approve(&state, &spent.id);
    state.consume(&binding("ann", "spent"), None, at(1)).unwrap().unwrap();
    flood(&place, "expired", 0);
    state.shared.write(|transaction| super::prune(transaction, at(50))).unwrap();
    let left = state.list(None, usize::MAX, at(50)).unwrap();
    let share = usize::try_from(super::MAX_PER_CALLER).unwrap();
    assert_eq!(left.len(), share + 2, "bob has a share");
    for own in [&waits, &spent] {
        assert!(left.iter().any(|approval| approval.id == own.id), "ann lost nothing to bob");
    }
    assert_eq!(left[0].id.as_str(), format!("apr_{:032x}", share + 50), "the newest are left");
}

/// A caller could once remove an operator's denial by declining ten thousand own requests.
#[test]
fn flood_of_requests_does_not_remove_a_denial() {
    let place = QueueFile::new();
    let state = place.open();
    for caller in ["ann", "bob"] {
        deny(&state, &ask(&state, caller, "no").id);
    }
    flood(&place, "denied", 100);
    state.shared.write(|transaction| super::prune(transaction, at(50))).unwrap();
    for caller in ["ann", "bob"] {
        assert!(state.denial(&binding(caller, "no"), None, at(99)).unwrap().is_some(), "{caller}");
    }
    // Instead, the caller cannot open new requests until the denials expire. Other callers can.
    let refused = state.open(question(binding("bob", "new"), 60, 200), at(60)).unwrap_err();
    assert_eq!(refused, ApprovalError::DeniedTooOften(1_000));
    state.open(question(binding("ann", "new"), 60, 200), at(60)).unwrap();
    state.open(question(binding("bob", "new"), 100, 200), at(100)).unwrap();
    state.shared.write(|transaction| super::prune(transaction, at(100))).unwrap();
    let left = state.list(Some(ApprovalState::Denied), usize::MAX, at(100)).unwrap();
    assert_eq!(left.len(), usize::try_from(super::MAX_PER_CALLER).unwrap() + 1, "expired, they are pruned");
}

#[test]
fn trust_of_one_caller_does_not_displace_that_of_another() {
    let place = QueueFile::new();
    let state = place.open();
    let trust = |caller: &str, flow: i64, expires: u64| Trust {
        caller: caller.to_owned(),
        flow: flow.to_string(),
        tool_digest: "tool".to_owned(),
        policy_digest: "policy".to_owned(),
        expires: at(expires),
    };
    state.remember(&trust("ann", 0, 50)).unwrap();
    let forge = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 + 50)
        INSERT INTO trusts SELECT 'bob', i, 'tool', 'policy', 1700000100000 + i FROM n";
    Connection::open(&place.path).unwrap().execute(forge, [super::MAX_PER_CALLER]).unwrap();
    state.remember(&trust("bob", 0, 9_000)).unwrap();
    assert_eq!(state.is_trusted(&trust("ann", 0, 0), at(1)), Ok(true));
    assert_eq!(state.is_trusted(&trust("bob", 1, 0), at(1)), Ok(false), "bob's first ones went");
}

#[test]
fn hidden_arguments_are_revealed_and_deleted_with_the_decision() {
    let place = QueueFile::new();
    let state = place.open();
    let whole = r#"{"text":"all of it"}"#;
    let hidden = HiddenArguments { bytes: 9, whole: Some(whole.to_owned()) };
    let asked = NewApproval { hidden, ..question(binding("ann", "a"), 0, 100) };
    let id = state.open(asked, at(0)).unwrap().id;
    let (olga, eve) = (Decider::Operator("olga"), Decider::Admin { subject: "eve", may_approve_own: false });
    let yes =
        |by: &Decider<'_>| state.decide(&id, ApprovalState::Approved, by, None, at(1)).map(|one| one.state);
    let client = Decider::Client { conversation: None };
    for by in [&olga, &eve, &client] {
        assert_eq!(yes(by), Err(ApprovalError::Unrevealed(9)));
    }
    let kept = |state: &StateDb| format!("{:?}", state.get(&id, at(1)).unwrap());
    assert!(!kept(&state).contains("all of it"), "only a reveal shows it");
    assert_eq!(state.reveal(&id, &olga, at(1)).unwrap(), whole);
    assert_eq!(yes(&eve), Err(ApprovalError::Unrevealed(9)), "eve has not seen it");
    assert_eq!(yes(&olga), Ok(ApprovalState::Approved));
    assert_eq!(
        state.reveal(&id, &eve, at(1)).unwrap_err(),
        ApprovalError::NotPending(ApprovalState::Approved)
    );
    let rest: i64 = Connection::open(&place.path)
        .unwrap()
        .query_row("SELECT count(*) FROM approvals WHERE whole IS NOT NULL", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rest, 0);
}

#[test]
fn self_approval_is_rejected_unless_configured() {
    let place = QueueFile::new();
    let state = place.open();
    let asked = ask(&state, "token:ann", "a");
    let admin = |subject, may_approve_own| Decider::Admin { subject, may_approve_own };
    let decide =
        |verdict, by: &Decider<'_>| state.decide(&asked.id, verdict, by, None, at(1)).map(|one| one.state);
    let own = decide(ApprovalState::Approved, &admin("token:ann", false));
    assert_eq!(own, Err(ApprovalError::OwnCall));
    assert_eq!(decide(ApprovalState::Approved, &admin("token:ann", true)), Ok(ApprovalState::Approved));
    let other = ask(&state, "token:ann", "b");
    let by_bob = state.decide(&other.id, ApprovalState::Approved, &admin("token:bob", false), None, at(1));
    assert!(by_bob.is_ok());
    // A person at the command line is an operator, even with the caller's name.
    let local = ask(&state, "local:local", "c");
    let operator = Decider::Operator("local:local");
    assert!(state.decide(&local.id, ApprovalState::Approved, &operator, None, at(1)).is_ok());
    // Denying an own call is harmless.
    let own = ask(&state, "token:ann", "d");
    assert!(state.decide(&own.id, ApprovalState::Denied, &admin("token:ann", false), None, at(1)).is_ok());
}

#[test]
fn client_denial_holds_in_its_conversation_until_an_operator_approves() {
    let place = QueueFile::new();
    let state = place.open();
    let asked = ask(&state, "ann", "a");
    let client = Decider::Client { conversation: Some("one") };
    state.decide(&asked.id, ApprovalState::Denied, &client, None, at(1)).unwrap();
    let denied = |conversation| state.denial(&binding("ann", "a"), conversation, at(2)).unwrap().is_some();
    assert_eq!([None, Some("one"), Some("two")].map(denied), [false, true, false]);
    let again = state.decide(&asked.id, ApprovalState::Approved, &client, None, at(2));
    assert_eq!(again.unwrap_err(), ApprovalError::NotPending(ApprovalState::Denied));
    let late = state.decide(&asked.id, ApprovalState::Approved, &Decider::Operator("olga"), None, at(100));
    assert_eq!(late.unwrap_err(), ApprovalError::Expired);
    approve(&state, &asked.id);
    assert!(!denied(Some("one")));
    assert_eq!(state.consume(&binding("ann", "a"), None, at(3)).unwrap().unwrap().decided_by, "olga");
}

#[test]
fn trust_settings_are_stored_with_the_request() {
    let place = QueueFile::new();
    let state = place.open();
    let remembers = Some(RememberScope { conversation: "one".to_owned(), until: at(3_600) });
    let asked = NewApproval { remembers: remembers.clone(), ..question(binding("ann", "a"), 0, 100) };
    let asked = state.open(asked, at(0)).unwrap();
    assert_eq!(asked.question.remembers, remembers);
    approve(&state, &asked.id);
    assert_eq!(state.consume(&binding("ann", "a"), None, at(2)).unwrap().unwrap().remembers, remembers);
}

#[test]
fn trust_matches_exactly_and_expires() {
    let place = QueueFile::new();
    let state = place.open();
    let text = |change: &str| change.to_owned();
    let trust = Trust {
        caller: text("ann"),
        flow: text("flow"),
        tool_digest: text("tool"),
        policy_digest: text("policy"),
        expires: at(100),
    };
    assert_eq!(state.is_trusted(&trust, at(0)), Ok(false));
    state.remember(&trust).unwrap();
    let later = Trust { expires: at(9999), ..trust.clone() };
    assert_eq!(
        place.open().is_trusted(&later, at(99)),
        Ok(true),
        "the kept expiry counts, not the given one"
    );
    assert_eq!(state.is_trusted(&later, at(100)), Ok(false));
    let others = [
        Trust { caller: text("Ann"), ..trust.clone() },
        Trust { flow: text("other"), ..trust.clone() },
        Trust { tool_digest: text("edited"), ..trust.clone() },
        Trust { policy_digest: text("loosened"), ..trust.clone() },
    ];
    for other in &others {
        assert_eq!(state.is_trusted(other, at(0)), Ok(false), "{other:?}");
    }
    state.remember(&Trust { expires: at(50), ..trust.clone() }).unwrap();
    assert_eq!(state.is_trusted(&trust, at(60)), Ok(false), "the latest approval counts");
}

#[test]
fn denial_holds_for_its_call_until_it_expires() {
    let place = QueueFile::new();
    let state = place.open();
    let approval = ask(&state, "ann", "a");
    let denial = |binding: &Binding, now| state.denial(binding, Some("any"), now).unwrap().map(|one| one.id);
    assert_eq!(denial(&approval.question.binding, at(1)), None, "not decided yet");
    deny(&state, &approval.id);
    assert_eq!(denial(&approval.question.binding, at(2)), Some(approval.id));
    for other in [binding("ann", "b"), binding("bob", "a")] {
        assert_eq!(denial(&other, at(2)), None);
    }
    assert_eq!(denial(&approval.question.binding, approval.question.expires), None);
}

#[test]
fn approval_can_be_checked_without_using_it() {
    let place = QueueFile::new();
    let state = place.open();
    let approval = ask(&state, "ann", "a");
    let own = &approval.question.binding;
    assert_eq!(state.is_approved(own, at(1)), Ok(false), "not decided yet");
    state.decide(&approval.id, ApprovalState::Approved, &Decider::Operator("olga"), None, at(1)).unwrap();
    for other in [binding("ann", "b"), binding("bob", "a")] {
        assert_eq!(state.is_approved(&other, at(2)), Ok(false));
    }
    assert_eq!(state.is_approved(own, approval.question.expires), Ok(false), "expired");
    assert_eq!(state.is_approved(own, at(2)), Ok(true));
    assert_eq!(state.is_approved(own, at(2)), Ok(true), "checking does not use it");
    assert!(state.consume(own, None, at(2)).unwrap().is_some());
    assert_eq!(state.is_approved(own, at(2)), Ok(false), "spent");
}

#[test]
fn ids_are_found_by_prefix() {
    let place = QueueFile::new();
    let state = place.open();
    let ids: Vec<ApprovalId> = ["1", "2", "3", "4"].map(|arguments| ask(&state, "ann", arguments).id).into();
    let id = &ids[0];
    assert_eq!(state.find_id(id.as_str()), Ok(id.clone()));
    let digits = &id.as_str()["apr_".len()..];
    assert_eq!(state.find_id(&digits[..12]), Ok(id.clone()));
    assert_eq!(state.find_id(&format!("apr_{}", &digits[..12])), Ok(id.clone()));
    assert_eq!(state.find_id(&digits[..3]), Err(ApprovalError::ShortId));
    assert_eq!(state.find_id("apr_"), Err(ApprovalError::ShortId));
    for unknown in ["zzzz", "apr_%%%%", "'; --", &format!("{digits}0"), &"0".repeat(32)] {
        assert_eq!(state.find_id(unknown), Err(ApprovalError::Unknown), "{unknown}");
    }
    let twin = format!("apr_{}{}", &digits[..31], if digits.ends_with('0') { '1' } else { '0' });
    state
        .shared
        .write(|transaction| {
            transaction.execute("UPDATE approvals SET id = ?1 WHERE id = ?2", [&twin, ids[1].as_str()])
        })
        .unwrap();
    let Err(ApprovalError::Ambiguous(found)) = state.find_id(&digits[..8]) else { panic!("it is ambiguous") };
    assert_eq!(found.len(), 2);
}

/// Anonymous callers share a name but not a quota.
#[test]
fn open_requests_are_counted_by_quota() {
    let place = QueueFile::new();
    let state = place.open();
    let open = |quota: &str, arguments: &str| {
        let asked = NewApproval {
            quota: quota.to_owned(),
            ..question(binding("anonymous:anyone", arguments), 0, 100)
        };
        state.open(asked, at(0))
    };
    for arguments in ["1", "2", "3", "4"] {
        open("anonymous:anyone@192.0.2.1", arguments).unwrap();
    }
    let full = ApprovalError::QueueFull(QueueLimit::OfCaller(4));
    assert_eq!(open("anonymous:anyone@192.0.2.1", "5").unwrap_err(), full);
    open("anonymous:anyone@192.0.2.2", "5").unwrap();
}
