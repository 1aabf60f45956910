use serde_json::json;

use super::*;
use crate::testing::{finished, record};

#[test]
fn summary_has_the_fields_of_a_span() {
    let record = record();
    let ended = CallSummary::of(&finished(&record, Some(Reason::Timeout)), CallerNames::Hashed);
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
fn caller_is_named_only_if_configured() {
    let record = record();
    assert_eq!(CallSummary::of(&finished(&record, None), CallerNames::Plain).caller, "anna@example.com");
    assert_eq!(CallerNames::default(), CallerNames::Hashed);
}

#[test]
fn arbitrary_client_text_is_left_out() {
    let mut record = record();
    record.tool = json!({ "name": "my password is hunter2" }).into();
    (record.client.transport, record.client.protocol) = ("hunter2", Some("hunter2".to_owned()));
    let ended = CallSummary::of(&finished(&record, Some(Reason::UnknownTool)), CallerNames::Hashed);
    assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
}

#[test]
fn summary_is_small_for_any_record() {
    let mut record = record();
    let huge = "ü".repeat(1 << 20);
    record.call_id.clone_from(&huge);
    record.tool = json!({ "name": &huge, "level": "L5" }).into();
    record.caller.sub.clone_from(&huge);
    (record.client.transport, record.client.protocol) = ("made up", Some(huge));
    let stages = vec![(CallStage::Execute, Duration::ZERO); 1000];
    let call = Finished { stages: &stages, ..finished(&record, None) };
    let ended = CallSummary::of(&call, CallerNames::Plain);
    let bytes = ended.call_id.capacity() + ended.caller.capacity() + ended.tool.as_ref().unwrap().capacity();
    assert!(bytes <= 3 * 8 * MOST_CHARS, "{bytes}");
    assert_eq!((ended.protocol, ended.transport, ended.stages.len()), (None, None, 6));
}

#[test]
fn outcome_follows_from_the_reason() {
    assert_eq!(CallOutcome::of(None), CallOutcome::Released);
    assert_eq!(CallOutcome::of(Some(Reason::ApprovalPending)), CallOutcome::Pending);
    assert_eq!(CallOutcome::of(Some(Reason::PolicyForbids)), CallOutcome::Refused);
    assert_eq!(CallOutcome::of(Some(Reason::ToolFailed)), CallOutcome::Failed);
    assert_eq!(CallOutcome::of(Some(Reason::JournalFailed)), CallOutcome::Broken);
    let errors: Vec<CallOutcome> = CallOutcome::ALL.into_iter().filter(|kind| kind.is_error()).collect();
    assert_eq!(errors, [CallOutcome::Failed, CallOutcome::Broken]);
}

const HASH_OF_ANNA: &str = "f7d54c22dda5b178";
