//! Refused requests are recorded, aggregated if there are many, and without their content.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::place::{Place, Serving, token};

fn listing() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })
}

fn refusals(place: &Place) -> Vec<Value> {
    place.journal("journal").into_iter().filter(|record| record["kind"] == "door.refused").collect()
}

#[test]
fn refusal_is_recorded_without_request_data() {
    let place = Place::new();
    let caller = token(&place, &[]);
    let serving = Serving::start(&place);
    assert_eq!(serving.post(None, &listing(), &[]).0, 401);
    assert_eq!(serving.post(Some("tg_wrong"), &listing(), &[]).0, 401);
    assert_eq!(serving.post(Some(&caller), &listing(), &[("origin", "https://evil.example")]).0, 403);
    assert_eq!(serving.post_to("/admin/v1/state", Some(&caller), &json!({}), &[]).0, 403);
    serving.stop();
    let records = refusals(&place);
    let reasons: BTreeSet<&str> = records.iter().map(|record| record["reason"].as_str().unwrap()).collect();
    let expected =
        ["auth.insufficient_scope", "auth.token_invalid", "auth.token_missing", "http.origin_not_allowed"];
    assert_eq!(reasons, BTreeSet::from(expected), "{records:?}");
    for record in &records {
        let who = if record["reason"] == expected[0] { json!("token:tests") } else { Value::Null };
        let mut expected = json!({
            "kind": "door.refused", "reason": record["reason"], "peer": "127.0.0.1", "caller": who, "count": 1,
        });
        if record["reason"].as_str().unwrap().starts_with("auth.") {
            expected["decision"] = json!("DENIED");
            expected["denial"] = json!({ "reason": record["reason"], "stage": "AUTH" });
        }
        assert_eq!(record, &expected);
    }
    let found = place.ok(&["audit", "query", "--reason", "auth.token_missing"]);
    assert!(found.contains("door.refused"), "{found}");
    for search in [["--decision", "DENIED"], ["--stage", "AUTH"]] {
        let found = place.ok(&["audit", "query", search[0], search[1]]);
        assert_eq!(found.matches("door.refused").count(), 3, "{search:?}: {found}");
    }
    assert_eq!(place.ok(&["audit", "query", "--caller", "token:tests"]).matches("door.refused").count(), 1);
    assert!(place.ok(&["audit", "verify"]).contains("intact"));
}

/// The end of the log line for this record.
fn line_of(record: &Value) -> String {
    match record["count"].as_u64().unwrap() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    }
}

/// An attacker who fills the disk must not stay unrecorded.
#[test]
fn refusals_during_a_full_disk_are_recorded_afterwards() {
    let place = Place::new();
    let serving = Serving::start_enduring(&place);
    serving.limit_files("1");
    for _ in 0..3 {
        assert_eq!(serving.post(None, &listing(), &[]).0, 401);
    }
    serving.wait_for("refused requests are not in the journal");
    serving.limit_files("unlimited");
    serving.stop();
    let records = refusals(&place);
    assert_eq!(records.iter().map(|record| record["count"].as_u64().unwrap()).sum::<u64>(), 3, "{records:?}");
}

#[test]
fn many_refusals_are_counted_in_few_records() {
    let place = Place::new();
    let admin = token(&place, &["--admin"]);
    let serving = Serving::start(&place);
    for _ in 0..1000 {
        serving.post(None, &listing(), &[]);
    }
    let metrics = serving.get("/admin/metrics", &admin);
    assert!(
        metrics.contains("\ntoolgate_door_refusals_total{reason=\"auth.token_missing\"} 1000\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("\ntoolgate_door_refusals_total{reason=\"auth.token_expired\"} 0\n"),
        "{metrics}"
    );
    let said = serving.stop();
    let records = refusals(&place);
    assert!(records.len() <= 20, "{} records", records.len());
    assert_eq!(records.iter().map(|record| record["count"].as_u64().unwrap()).sum::<u64>(), 1000);
    let lines: Vec<&String> = said.iter().filter(|line| line.contains(" refused ")).collect();
    let entries: Vec<String> = records.iter().map(line_of).collect();
    assert_eq!(lines.len(), records.len(), "{lines:?}");
    for (line, entry) in lines.iter().zip(entries) {
        assert!(line.contains("refused 127.0.0.1: auth.token_missing"), "{line}");
        assert!(line.ends_with(&entry), "{line}");
    }
}
