use std::time::Duration;

use tempfile::TempDir;
use toolgate_gate::HiddenArguments;
use toolgate_store::ApprovalLimits;

use super::*;

struct World {
    queue: RecordedQueue,
    written: Arc<Mutex<Vec<Value>>>,
    id: ApprovalId,
    _folder: TempDir,
}

/// One pending question, and a journal that works or fails.
fn world(journal_works: bool) -> World {
    let folder = tempfile::tempdir().unwrap();
    let limits = ApprovalLimits { max_pending: 10, max_pending_per_caller: 10 };
    let state = Arc::new(StateDb::open(&folder.path().join("state.db"), limits).unwrap());
    let written = Arc::new(Mutex::new(Vec::new()));
    let records = Arc::clone(&written);
    let note = move |entry: &Value| {
        if !journal_works {
            return Err(OpenError { part: "journal", problem: "the disk is full".to_owned() });
        }
        records.lock().unwrap().push(entry.clone());
        Ok(())
    };
    let redact = |text: &str| Ok(text_for_journal(&Detector::shipped().unwrap(), text.to_owned()));
    let queue = RecordedQueue::new(state, note, redact);
    let text = |text: &str| text.to_owned();
    let question = NewApproval {
        quota: "ann".to_owned(),
        binding: Binding {
            caller: text("token:tests"),
            tool: text("say"),
            tool_digest: text("tool"),
            arguments_digest: text("arguments"),
            policy_digest: text("policy"),
        },
        prompt: text("Say it?"),
        arguments: None,
        hidden: HiddenArguments::default(),
        remembers: None,
        because: vec![text("risk")],
        risk: text("L4"),
        created: at(0),
        expires: at(100),
    };
    let id = queue.open(question, at(0)).unwrap().id;
    World { queue, written, id, _folder: folder }
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 + seconds)
}

#[test]
fn decision_is_recorded_with_its_author() {
    let world = world(true);
    world
        .queue
        .decide(&world.id, ApprovalState::Denied, &Decider::Operator("admin ann"), Some("not today"), at(1))
        .unwrap();
    let expected = json!({
        "kind": "approval.decided", "approval": world.id.as_str(), "state": "denied", "by": "admin ann",
        "note": "not today", "caller": "token:tests", "tool": "say",
    });
    assert_eq!(*world.written.lock().unwrap(), [expected]);
}

#[test]
fn decision_that_cannot_be_recorded_is_not_made() {
    let world = world(false);
    for verdict in [ApprovalState::Approved, ApprovalState::Denied] {
        let refused =
            world.queue.decide(&world.id, verdict, &Decider::Client { conversation: None }, None, at(1));
        assert!(matches!(refused, Err(ApprovalError::Unavailable(_))), "{refused:?}");
    }
    assert_eq!(world.queue.get(&world.id, at(1)).unwrap().state, ApprovalState::Pending);
}

#[test]
fn late_answer_is_not_recorded() {
    let world = world(true);
    world
        .queue
        .decide(&world.id, ApprovalState::Denied, &Decider::Operator("admin ann"), None, at(1))
        .unwrap();
    let late = world.queue.decide(
        &world.id,
        ApprovalState::Approved,
        &Decider::Client { conversation: None },
        None,
        at(2),
    );
    assert_eq!(late.unwrap_err(), ApprovalError::NotPending(ApprovalState::Denied));
    let unknown = ApprovalId::from_random([7; 16]);
    let lost = world.queue.decide(
        &unknown,
        ApprovalState::Approved,
        &Decider::Client { conversation: None },
        None,
        at(2),
    );
    assert_eq!(lost.unwrap_err(), ApprovalError::Unknown);
    assert_eq!(world.written.lock().unwrap().len(), 1);
}

#[test]
fn secret_in_a_note_is_redacted_in_journal_and_queue() {
    let world = world(true);
    let note = format!("used {} for it", concat!("AKIA", "QYLPMN5HHHFPZAM2"));
    let decided = world
        .queue
        .decide(&world.id, ApprovalState::Approved, &Decider::Operator("admin ann"), Some(&note), at(1))
        .unwrap();
    assert_eq!(decided.note.as_deref(), Some("used [REDACTED] for it"));
    assert_eq!(world.written.lock().unwrap()[0]["note"], "used [REDACTED] for it");
}

#[test]
fn refused_attempts_and_reveals_are_recorded() {
    let world = world(true);
    let own = Decider::Admin { subject: "token:tests", may_approve_own: false };
    let refused = world.queue.decide(&world.id, ApprovalState::Approved, &own, None, at(1)).unwrap_err();
    assert_eq!(refused, ApprovalError::OwnCall);
    world.queue.reveal(&world.id, &own, at(1)).unwrap();
    let entry = |kind: &str| {
        json!({
            "kind": kind, "approval": world.id.as_str(), "by": "token:tests", "caller": "token:tests", "tool": "say",
        })
    };
    let mut refusal = entry("approval.refused");
    refusal["why"] = refused.to_string().into();
    assert_eq!(*world.written.lock().unwrap(), [refusal, entry("approval.revealed")]);
    assert_eq!(world.queue.get(&world.id, at(1)).unwrap().state, ApprovalState::Pending);
}

#[test]
fn reveal_that_cannot_be_recorded_shows_nothing() {
    let world = world(false);
    let refused = world.queue.reveal(&world.id, &Decider::Operator("ann"), at(1));
    assert!(matches!(refused, Err(ApprovalError::Unavailable(_))), "{refused:?}");
}
