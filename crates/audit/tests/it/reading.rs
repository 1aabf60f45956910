//! Reading: order, time ranges, and damaged input.

use std::{
    fs,
    time::{Duration, UNIX_EPOCH},
};

use proptest::prelude::*;
use serde_json::json;
use toolgate_audit::{TimeRange, read, verify};

use crate::support::{DAY, START, TestJournal};

#[test]
fn records_are_read_in_order_and_time() {
    let place = TestJournal::three_days();
    let count = |since: Option<u64>, until: Option<u64>| {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(START + seconds);
        let span = TimeRange { since: since.map(at), until: until.map(at) };
        read(&place.folder(), span)
            .unwrap()
            .map(Result::unwrap)
            .map(|record| record.position.seq)
            .collect::<Vec<_>>()
    };
    assert_eq!(count(None, None), (1..=39).collect::<Vec<_>>());
    assert_eq!(count(Some(DAY + 11), None), (14..=39).collect::<Vec<_>>());
    assert_eq!(count(Some(DAY + 11), Some(DAY + 13)), [14, 15]);
    assert_eq!(count(None, Some(2)), [1]);
    assert_eq!(count(Some(5 * DAY), None), [0_u64; 0]);
}

#[test]
fn reader_gets_new_records_later() {
    let place = TestJournal::new();
    let journal = place.open();
    let mut entries = read(&place.folder(), TimeRange::default()).unwrap();
    assert_eq!(entries.next(), None);
    for day in 0..3 {
        place.fill(&journal, 2);
        let kinds: Vec<_> = entries.by_ref().map(|record| record.unwrap().entry["kind"].clone()).collect();
        let expected = if day == 0 { vec!["test"; 2] } else { vec!["checkpoint", "test", "test"] };
        assert_eq!(kinds, expected);
        place.pass(DAY);
    }
}

#[test]
fn incomplete_last_line_is_read_later() {
    let place = TestJournal::three_days();
    let file = place.path("2026-11-18.jsonl");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 5]).unwrap();
    let mut entries = read(&place.folder(), TimeRange::default()).unwrap();
    assert_eq!(entries.by_ref().flatten().count(), 38);
    assert_eq!(entries.next(), None);
    fs::write(&file, &whole).unwrap();
    assert_eq!(entries.next().unwrap().unwrap().position.seq, 39);
}

#[test]
fn damaged_line_is_reported_and_the_rest_is_read() {
    let place = TestJournal::three_days();
    let mut lines = place.lines("2026-11-17.jsonl");
    lines[2] = lines[2].replace("test", "tesu");
    lines[5] = "x".repeat(9 << 20);
    place.put_lines("2026-11-17.jsonl", &lines);
    let (good, bad): (Vec<_>, Vec<_>) =
        read(&place.folder(), TimeRange::default()).unwrap().partition(Result::is_ok);
    assert_eq!(good.len(), 37);
    let bad: Vec<_> = bad.into_iter().map(|flaw| flaw.unwrap_err().to_string()).collect();
    assert_eq!(
        bad,
        [
            "2026-11-17.jsonl:3: it is not a record, or was changed; run `toolgate audit verify`",
            "2026-11-17.jsonl:6: it is too long for a record; run `toolgate audit verify`",
        ]
    );
}

#[test]
fn numbers_are_read_as_doubles() {
    let place = TestJournal::new();
    let journal = place.open();
    journal.append(&json!({"exact": (1_u64 << 53), "rounded": u64::MAX})).unwrap();
    let record = read(&place.folder(), TimeRange::default()).unwrap().next().unwrap().unwrap();
    assert_eq!(record.entry["exact"], json!(1_u64 << 53));
    assert_eq!(record.entry["rounded"].as_f64(), Some(18_446_744_073_709_552_000.0));
    place.assert_clean();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn garbage_is_rejected_without_a_panic(
        lines in proptest::collection::vec(garbage(), 0..12),
        last in garbage(),
    ) {
        let place = TestJournal::new();
        fs::create_dir(place.folder()).unwrap();
        let mut content = lines.join(&b'\n');
        content.push(b'\n');
        content.extend(last);
        fs::write(place.path("2026-11-16.jsonl"), &content).unwrap();
        prop_assert!(read(&place.folder(), TimeRange::default()).unwrap().all(|record| record.is_err()));
        prop_assert!(!verify(&place.folder(), None, None).is_clean());
        prop_assert!(place.try_open().is_err());
    }
}

/// Random bytes, and fragments of records.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let zeroes = "0".repeat(64);
    let pieces = vec![
        "{\"entry\":".to_owned(),
        "{}".to_owned(),
        "{\"kind\":\"checkpoint\"".to_owned(),
        "[".repeat(300),
        format!(",\"hash\":\"sha256:{zeroes}\""),
        format!(",\"prev\":\"sha256:{zeroes}\""),
        ",\"seq\":1".to_owned(),
        ",\"seq\":99999999999999999999".to_owned(),
        ",\"time\":\"2026-11-16T03:59:31.123456Z\"}".to_owned(),
        "\"}".to_owned(),
        "é\u{0}\r".to_owned(),
    ];
    let piece = prop_oneof![
        proptest::sample::select(pieces.clone()).prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    let shaped = proptest::sample::subsequence(pieces.clone(), pieces.len() - 3..=pieces.len());
    prop_oneof![
        proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat()),
        shaped.prop_map(|pieces| pieces.concat().into_bytes()),
    ]
}
