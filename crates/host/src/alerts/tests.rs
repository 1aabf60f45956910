//! Every alert is either delivered or recorded, whenever the gateway stops.

use std::{fs, path::Path};

use super::*;

fn journal(state: &Path) -> FileJournal {
    let key = toolgate_audit::Key::open_or_create(&state.join("journal.key")).unwrap();
    let clock: toolgate_audit::ClockFn = Arc::new(SystemTime::now);
    let options =
        toolgate_audit::JournalOptions { checkpoint_every: 1_000, sync: toolgate_audit::Durability::Write };
    let files = toolgate_audit::Journal::open(&state.join("journal"), key, options, clock).unwrap();
    FileJournal::new(files, toolgate_audit::Durability::Write)
}

fn queue(state: &Path) -> Arc<AlertQueue> {
    Arc::new(AlertQueue { waiting: Mutex::default(), came: Notify::new(), journal: journal(state) })
}

fn alert(call: &str) -> Value {
    json!({ "kind": "alert", "callId": call })
}

/// The calls whose alerts are recorded as not delivered.
fn undelivered_calls(state: &Path) -> Vec<String> {
    lost(state).iter().map(|entry| entry["callId"].as_str().unwrap().to_owned()).collect()
}

/// The records of alerts that were not delivered.
fn lost(state: &Path) -> Vec<Value> {
    let mut entries = Vec::new();
    for file in fs::read_dir(state.join("journal")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            for line in fs::read_to_string(path).unwrap().lines() {
                let record: Value = serde_json::from_str(line).unwrap();
                if record["entry"]["kind"] == "alert.not_delivered" {
                    entries.push(record["entry"].clone());
                }
            }
        }
    }
    entries
}

/// The webhook accepts the first alert while the gateway stops and settles it too.
#[test]
fn settling_an_alert_twice_keeps_the_next_one() {
    let state = tempfile::tempdir().unwrap();
    let queue = queue(state.path());
    for call in ["a", "b"] {
        queue.add(alert(call));
    }
    let (posted, _) = queue.first().unwrap();
    assert_eq!(queue.take(), Some(alert("a")));
    assert!(!queue.settle(posted));
    assert_eq!(queue.take(), Some(alert("b")), "it was not posted, so it must be recorded");
}

#[test]
fn posted_alert_is_settled_once() {
    let state = tempfile::tempdir().unwrap();
    let queue = queue(state.path());
    for call in ["a", "b"] {
        queue.add(alert(call));
    }
    let (posted, _) = queue.first().unwrap();
    assert!(queue.settle(posted) && !queue.settle(posted));
    assert_eq!(queue.first().unwrap().1, alert("b"));
}

/// A program that drops its gateway without closing it.
#[tokio::test]
async fn dropped_gateway_records_pending_alerts() {
    let state = tempfile::tempdir().unwrap();
    let queue = queue(state.path());
    let task = tokio::spawn(std::future::pending());
    let alerts = Alerts { queue: Arc::clone(&queue), task, next: None };
    for call in ["a", "b"] {
        queue.add(alert(call));
    }
    assert!(undelivered_calls(state.path()).is_empty());
    drop(alerts);
    assert_eq!(undelivered_calls(state.path()), ["a", "b"]);
    assert!(queue.first().is_none());
}

#[tokio::test]
async fn alert_without_a_call_is_posted_or_recorded() {
    let state = tempfile::tempdir().unwrap();
    let queue = queue(state.path());
    let alerts = Alerts { queue: Arc::clone(&queue), task: tokio::spawn(std::future::pending()), next: None };
    let entry = json!({ "kind": "worker.escape_attempt", "worker": 7, "calls": 3 });
    alerts.raise(&entry);
    let (_, posted) = queue.first().unwrap();
    for key in ["kind", "worker", "calls"] {
        assert_eq!(posted[key], entry[key], "{posted}");
    }
    assert!(posted["timestampMs"].is_u64(), "{posted}");
    drop(alerts);
    let lost = lost(state.path());
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!((&lost[0]["callId"], &lost[0]["worker"]), (&Value::Null, &json!(7)));
}
