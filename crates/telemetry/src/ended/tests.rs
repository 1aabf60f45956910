use serde_json::json;

use super::*;
use crate::testing::{finished, record};

#[test]
fn a_summary_has_what_a_span_needs() {
    let record = record();
    let ended = Ended::of(&finished(&record, Some(Reason::Timeout)), Callers::Hashed);
    assert_eq!(ended.tool.as_deref(), Some("weather"));
    assert_eq!(ended.level, Some(RiskLevel::L2));
    assert_eq!(ended.transport, Some("http"));
    assert_eq!(ended.protocol.as_deref(), Some("2026-07-28"));
    assert_eq!(ended.stages.len(), 6);
    // printf %s anna@example.com | sha256sum
    assert_eq!(ended.caller, HASH_OF_ANNA);
    assert!(!format!("{ended:?}").contains("SECRET"), "{ended:?}");
}

#[test]
fn a_caller_is_named_only_where_that_is_set() {
    let record = record();
    assert_eq!(Ended::of(&finished(&record, None), Callers::Plain).caller, "anna@example.com");
    assert_eq!(Callers::default(), Callers::Hashed);
}

#[test]
fn text_that_a_client_made_up_is_left_out() {
    let mut record = record();
    record.tool = json!({ "name": "my password is hunter2" }).into();
    (record.client.transport, record.client.protocol) = ("hunter2", Some("hunter2".to_owned()));
    let ended = Ended::of(&finished(&record, Some(Reason::UnknownTool)), Callers::Hashed);
    assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
}

#[test]
fn a_summary_is_small_whatever_the_record_holds() {
    let mut record = record();
    let huge = "ü".repeat(1 << 20);
    record.call_id.clone_from(&huge);
    record.tool = json!({ "name": &huge, "level": "L5" }).into();
    record.caller.sub.clone_from(&huge);
    (record.client.transport, record.client.protocol) = ("made up", Some(huge));
    let stages = vec![(Stage::Execute, Duration::ZERO); 1000];
    let call = Finished { stages: &stages, ..finished(&record, None) };
    let ended = Ended::of(&call, Callers::Plain);
    let bytes = ended.call_id.capacity() + ended.caller.capacity() + ended.tool.as_ref().unwrap().capacity();
    assert!(bytes <= 3 * 8 * MOST_CHARS, "{bytes}");
    assert_eq!((ended.protocol, ended.transport, ended.stages.len()), (None, None, 6));
}

#[test]
fn the_reason_says_how_a_call_ended() {
    assert_eq!(Kind::of(None), Kind::Released);
    assert_eq!(Kind::of(Some(Reason::ApprovalPending)), Kind::Pending);
    assert_eq!(Kind::of(Some(Reason::PolicyForbids)), Kind::Refused);
    assert_eq!(Kind::of(Some(Reason::ToolFailed)), Kind::Failed);
    assert_eq!(Kind::of(Some(Reason::JournalFailed)), Kind::Broken);
    let errors: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| kind.is_error()).collect();
    assert_eq!(errors, [Kind::Failed, Kind::Broken]);
}

const HASH_OF_ANNA: &str = "f7d54c22dda5b178";
