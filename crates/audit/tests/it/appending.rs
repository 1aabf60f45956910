//! Appending: concurrent writers, clocks that jump, and files that change under the writer.

use std::{
    collections::HashSet,
    fs,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use serde_json::json;
use toolgate_audit::{
    ClockBehind, Durability, Journal, JournalError, JournalOptions, Record, TimeRange, read, verify,
};

use crate::support::{DAY, START, TestJournal, parse, system_clock};

#[test]
fn records_of_many_threads_are_complete_and_in_order() {
    for sync in [Durability::Write, Durability::Disk] {
        let place = TestJournal::new();
        let options = JournalOptions { checkpoint_every: 50, sync };
        let journal = Journal::open(&place.folder(), place.key(), options, system_clock()).unwrap();
        let positions = Mutex::new(HashSet::new());
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (journal, positions) = (&journal, &positions);
                scope.spawn(move || {
                    for number in 0..100 {
                        let position = journal.append(&json!({"thread": thread, "number": number})).unwrap();
                        assert!(positions.lock().unwrap().insert(position));
                    }
                });
            }
        });
        journal.close().unwrap();
        let report = place.assert_clean();
        assert_eq!((report.records, report.checkpoints), (816, 16), "{sync:?}");
        let records = read(&place.folder(), TimeRange::default()).unwrap().map(Result::unwrap);
        let mut next = [0; 8];
        for record in records.filter(|record| record.entry.get("thread").is_some()) {
            assert!(positions.lock().unwrap().remove(&record.position));
            let thread = usize::try_from(record.entry["thread"].as_u64().unwrap()).unwrap();
            assert_eq!(record.entry["number"], json!(next[thread]), "a thread's records stay in its order");
            next[thread] += 1;
        }
        assert!(positions.lock().unwrap().is_empty());
    }
}

#[test]
fn journal_is_clean_while_it_is_written() {
    let place = TestJournal::new();
    let journal =
        Journal::open(&place.folder(), place.key(), JournalOptions::default(), system_clock()).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    journal.append(&json!({"long": "x".repeat(5000)})).unwrap();
                }
            });
        }
        for _ in 0..15 {
            place.assert_clean();
        }
        is_over.store(true, Ordering::SeqCst);
    });
}

#[test]
fn times_and_files_never_go_back() {
    let place = TestJournal::new();
    let journal = place.open();
    place.pass(2 * DAY);
    place.fill(&journal, 1);
    place.time.store(START, Ordering::SeqCst);
    place.fill(&journal, 3);
    place.time.store(0, Ordering::SeqCst);
    journal.checkpoint().unwrap();
    journal.close().unwrap();
    assert_eq!(place.files(), ["2026-11-18.jsonl", "head.json"]);
    let times: HashSet<_> =
        place.lines("2026-11-18.jsonl").iter().map(|line| parse(line)["time"].clone()).collect();
    assert_eq!(times, HashSet::from([json!("2026-11-18T03:59:32.000000Z")]));
    place.assert_clean();
}

/// A clock that was ahead once must not hide the real time of later records.
#[test]
fn real_time_is_recorded_while_the_clock_is_behind() {
    let place = TestJournal::new();
    let journal = place.open();
    place.pass(2 * DAY);
    place.fill(&journal, 1);
    assert_eq!(journal.clock_behind(), Duration::ZERO);
    place.time.store(START, Ordering::SeqCst);
    assert_eq!(journal.clock_behind(), Duration::from_secs(2 * DAY + 1));
    place.fill(&journal, 2);
    journal.checkpoint().unwrap();
    journal.close().unwrap();
    // It is still behind after a restart; the next restart catches up.
    let journal = place.open();
    place.fill(&journal, 1);
    place.pass(2 * DAY);
    assert_eq!(journal.clock_behind(), Duration::ZERO);
    place.fill(&journal, 1);
    journal.close().unwrap();
    let report = place.assert_clean();
    let expected = ClockBehind { records: 4, first: 2, last: 5, seconds: 2 * DAY };
    assert_eq!(report.clock_behind, expected);

    let records: Vec<Record> =
        read(&place.folder(), TimeRange::default()).unwrap().map(|record| record.unwrap()).collect();
    let real: Vec<&str> =
        records.iter().filter(|record| record.entry["kind"] == "test").map(Record::real_time).collect();
    let expected = [
        "2026-11-18T03:59:32.000000Z",
        "2026-11-16T03:59:32.000000Z",
        "2026-11-16T03:59:33.000000Z",
        "2026-11-16T03:59:34.000000Z",
        "2026-11-18T03:59:35.000000Z",
    ];
    assert_eq!(real, expected);
    // A query by real time finds them.
    let day = UNIX_EPOCH + Duration::from_secs(START - START % DAY);
    let span = TimeRange { since: Some(day), until: Some(day + Duration::from_secs(DAY)) };
    let found = read(&place.folder(), span).unwrap().map(|record| record.unwrap());
    assert_eq!(found.filter(|record| record.entry["kind"] == "test").count(), 3);
}

#[test]
fn edited_wall_clock_is_detected() {
    let place = TestJournal::new();
    let journal = place.open();
    place.pass(DAY);
    place.fill(&journal, 1);
    place.time.store(START, Ordering::SeqCst);
    place.fill(&journal, 1);
    journal.close().unwrap();
    let file = "2026-11-17.jsonl";
    let lines = place.lines(file);
    let edited = |edit: &dyn Fn(&str) -> String| {
        let mut lines = lines.clone();
        lines[1] = edit(&lines[1]);
        place.put_lines(file, &lines);
        place.findings()
    };
    let other =
        edited(&|line| line.replace("\"wallClock\":\"2026-11-16T03", "\"wallClock\":\"2026-11-16T04"));
    assert_eq!(other, ["2026-11-17.jsonl:2 edited"]);
    let ahead = edited(&|line| line.replace("\"wallClock\":\"2026-11-16", "\"wallClock\":\"2026-11-18"));
    assert!(ahead.contains(&"2026-11-17.jsonl:2 not_a_record".to_owned()), "{ahead:?}");
    let without = edited(&|line| format!("{}}}", line.split_once(",\"wallClock\"").unwrap().0));
    assert_eq!(without, ["2026-11-17.jsonl:2 edited"]);
}

#[test]
fn clock_beyond_9999_refuses_until_it_is_corrected() {
    let place = TestJournal::new();
    let journal = place.open();
    place.time.store(1 << 40, Ordering::SeqCst);
    assert!(journal.append(&json!({})).unwrap_err().to_string().contains("the clock"));
    place.time.store(START, Ordering::SeqCst);
    place.fill(&journal, 1);
    journal.close().unwrap();
    place.assert_clean();
}

#[test]
fn checkpoint_is_written_on_request_if_there_are_new_records() {
    let place = TestJournal::new();
    let journal = place.open();
    journal.checkpoint().unwrap();
    place.fill(&journal, 2);
    journal.checkpoint().unwrap();
    journal.checkpoint().unwrap();
    let report = place.assert_clean();
    assert_eq!((report.records, report.checkpoints, report.unsealed), (3, 1, 0));
    // A copied head contains the last checkpoint.
    let head = parse(&fs::read_to_string(place.path("head.json")).unwrap());
    assert_eq!((head["seq"].as_u64(), head["clean"].as_bool()), (Some(3), Some(false)));
    place.fill(&journal, 1);
    assert_eq!(place.assert_clean().unsealed, 1);
}

#[test]
fn head_follows_automatic_checkpoints() {
    let place = TestJournal::new();
    let journal = place.open();
    place.fill(&journal, 9);
    // Dropping waits until the head is written.
    drop(journal);
    let head = parse(&fs::read_to_string(place.path("head.json")).unwrap());
    assert_eq!((head["seq"].as_u64(), head["clean"].as_bool()), (Some(10), Some(false)));
}

#[test]
fn closed_journal_refuses_records() {
    let place = TestJournal::new();
    let journal = place.open();
    place.fill(&journal, 1);
    let clone = journal.clone();
    journal.close().unwrap();
    assert!(matches!(clone.append(&json!({})), Err(JournalError::Closed)));
    assert!(matches!(clone.checkpoint(), Err(JournalError::Closed)));
    clone.close().unwrap();
    assert_eq!(place.assert_clean().records, 2);
}

#[test]
fn refused_entry_leaves_no_trace() {
    let place = TestJournal::new();
    let journal = place.open();
    for bad in [json!([1]), json!({"kind": "checkpoint"}), json!("x")] {
        assert!(matches!(journal.append(&bad), Err(JournalError::Entry(_))), "{bad}");
    }
    place.fill(&journal, 1);
    journal.close().unwrap();
    assert_eq!(place.assert_clean().records, 2);
}

/// Changes the file that is being written: an acknowledged record must be in the journal.
#[track_caller]
fn check_broken(interfere: impl Fn(&Path)) {
    let place = TestJournal::new();
    let journal = place.open();
    place.fill(&journal, 2);
    interfere(&place.path("2026-11-16.jsonl"));
    let outcome = (0..5).find_map(|_| journal.append(&json!({})).err());
    assert!(matches!(outcome, Some(JournalError::Broken(_))), "{outcome:?}");
    for _ in 0..2 {
        assert!(matches!(journal.append(&json!({})), Err(JournalError::Broken(_))));
        assert!(matches!(journal.close(), Err(JournalError::Broken(_))));
    }
}

#[test]
fn changed_file_stops_the_writer() {
    check_broken(|path| fs::remove_file(path).unwrap());
    check_broken(|path| fs::OpenOptions::new().write(true).open(path).unwrap().set_len(10).unwrap());
    check_broken(|path| fs::write(path, [fs::read(path).unwrap(), b"more".to_vec()].concat()).unwrap());
    check_broken(|path| fs::rename(path, path.with_extension("away")).unwrap());
    check_broken(|path| {
        let content = fs::read(path).unwrap();
        fs::rename(path, path.with_extension("away")).unwrap();
        fs::write(path, content).unwrap();
    });
}

#[test]
fn file_of_a_future_day_is_not_overwritten() {
    let place = TestJournal::new();
    let journal = place.open();
    place.fill(&journal, 1);
    fs::write(place.path("2026-11-17.jsonl"), "planted\n").unwrap();
    place.pass(DAY);
    assert!(matches!(journal.append(&json!({})), Err(JournalError::Broken(_))));
    assert_eq!(fs::read_to_string(place.path("2026-11-17.jsonl")).unwrap(), "planted\n");
}

#[test]
fn empty_journal_is_clean() {
    let place = TestJournal::new();
    place.open().close().unwrap();
    let report = verify(&place.folder(), None, None);
    assert!(report.is_clean());
    assert_eq!((report.records, report.first), (0, None));
    place.open().close().unwrap();
    assert_eq!(place.assert_clean().records, 0, "an empty journal has nothing to recover");
}
