//! Receipts prove records with nothing but the public key.

use std::fs;

use serde_json::{Value, json};
use toolgate_audit::{JournalError, Receipt, receipt, receipt_for, verify_receipt};

use crate::support::{TestJournal, rehash};

/// Changes a receipt and compares the error.
#[track_caller]
fn check_refused(change: impl Fn(&mut Value), expected: &str) {
    let place = TestJournal::three_days();
    let mut value = serde_json::to_value(receipt(&place.folder(), 17).unwrap()).unwrap();
    change(&mut value);
    let outcome =
        serde_json::from_value::<Receipt>(value).map_err(|error| error.to_string()).and_then(|receipt| {
            verify_receipt(&receipt, place.key().public()).map_err(|error| error.to_string())
        });
    let message = outcome.unwrap_err();
    assert!(message.contains(expected), "{message}");
}

#[test]
fn every_record_has_a_valid_receipt() {
    let place = TestJournal::three_days();
    for seq in 1..=38 {
        let receipt = receipt(&place.folder(), seq).unwrap();
        let text = serde_json::to_string_pretty(&receipt).unwrap();
        let again: Receipt = serde_json::from_str(&text).unwrap();
        let records = verify_receipt(&again, place.key().public()).unwrap();
        assert_eq!(records.iter().map(|record| record.position.seq).collect::<Vec<_>>(), [seq]);
    }
    // No checkpoint covers the last checkpoint.
    assert!(matches!(receipt(&place.folder(), 39), Err(JournalError::NotCovered(_))));
    assert!(matches!(receipt(&place.folder(), 40), Err(JournalError::NotFound(_))));
}

#[test]
fn one_receipt_proves_several_records() {
    let place = TestJournal::three_days();
    let receipt = receipt_for(&place.folder(), |record| record.entry["number"] == json!(3)).unwrap();
    let records = verify_receipt(&receipt, place.key().public()).unwrap();
    assert_eq!(records.iter().map(|record| record.position.seq).collect::<Vec<_>>(), [4, 17, 30]);
    assert!(records.iter().all(|record| record.entry["number"] == json!(3)));
}

#[test]
fn changed_receipt_is_refused() {
    check_refused(
        |receipt| receipt["records"][0]["record"]["entry"]["number"] = json!(9),
        "record 17 was changed",
    );
    check_refused(
        |receipt| {
            receipt["records"][0]["record"]["entry"]["number"] = json!(9);
            rehash(&mut receipt["records"][0]["record"]);
        },
        "the checkpoint does not cover record",
    );
    check_refused(
        |receipt| {
            receipt["records"][0]["record"]["seq"] = json!(16);
            rehash(&mut receipt["records"][0]["record"]);
        },
        "the checkpoint does not cover record",
    );
    check_refused(
        |receipt| receipt["records"][0]["path"] = json!([]),
        "the checkpoint does not cover record",
    );
    check_refused(|receipt| receipt["records"][0]["record"]["more"] = json!(1), "not a record");
    check_refused(|receipt| receipt["records"] = json!([]), "no records");
    check_refused(|receipt| receipt["checkpoint"]["size"] = json!(18), "changed after signing");
    for version in [1, 3] {
        check_refused(|receipt| receipt["toolgateReceipt"] = json!(version), "another version");
    }
    check_refused(
        |receipt| receipt["checkpoint"]["listing"]["name"] = json!("other"),
        "changed after signing",
    );
    check_refused(|receipt| receipt["more"] = json!(2), "unknown field");
}

#[test]
fn receipt_of_another_key_is_refused() {
    let place = TestJournal::three_days();
    let receipt = receipt(&place.folder(), 1).unwrap();
    let message = verify_receipt(&receipt, place.other_key().public()).unwrap_err().to_string();
    assert!(message.contains("not the trusted key"), "{message}");
}

#[test]
fn damaged_journal_gives_no_receipt() {
    let place = TestJournal::three_days();
    let lines = place.lines("2026-11-16.jsonl");
    place.put_lines("2026-11-16.jsonl", &lines[1..]);
    assert!(matches!(receipt(&place.folder(), 17), Err(JournalError::Receipt(_))));
    fs::write(place.path("2026-11-16.jsonl"), "garbage\n").unwrap();
    assert!(matches!(receipt(&place.folder(), 17), Err(JournalError::Receipt(_))));
}

#[test]
fn receipt_can_be_created_while_the_journal_is_written() {
    let place = TestJournal::new();
    let journal = place.open();
    place.fill(&journal, 5);
    assert!(verify_receipt(&receipt(&place.folder(), 4).unwrap(), place.key().public()).is_ok());
    let message = receipt(&place.folder(), 6).unwrap_err().to_string();
    assert!(message.contains("no checkpoint covers the record yet"), "{message}");
}
