//! Opening an existing journal: recovery, and when a writer refuses to continue.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use serde_json::json;
use toolgate_audit::{Journal, JournalError, TimeRange, read};

use crate::support::{DAY, TestJournal, options, parse, rechain, rehash, write};

/// Tampers with a closed or unclosed journal and compares the refusal. The attempt must not change anything.
#[track_caller]
fn check_refused(place: &TestJournal, expected: &str) {
    let before: Vec<_> =
        place.files().iter().map(|name| (name.clone(), fs::read(place.path(name)).unwrap())).collect();
    let error = place.try_open().unwrap_err();
    assert!(matches!(error, JournalError::Untrusted { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains(expected), "{message}");
    assert!(message.contains("toolgate audit verify"), "{message}");
    for (name, content) in before {
        assert_eq!(fs::read(place.path(&name)).unwrap(), content, "{name}");
    }
}

/// Two checkpoints and two records after them, not closed.
fn left() -> (TestJournal, String) {
    let place = TestJournal::new();
    let journal = place.open();
    place.fill(&journal, 10);
    drop(journal);
    let day = place.files().remove(0);
    (place, day)
}

#[test]
fn directory_and_files_are_for_the_owner_only() {
    let place = TestJournal::three_days();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(place.folder()), 0o700);
    for item in fs::read_dir(place.folder()).unwrap().flatten() {
        assert_eq!(mode(item.path()), 0o600, "{:?}", item.path());
    }
}

#[test]
fn second_writer_is_refused() {
    let place = TestJournal::new();
    let journal = place.open();
    let error = place.try_open().unwrap_err();
    assert!(matches!(error, JournalError::InUse { .. }));
    assert!(error.to_string().contains("stop that one"), "{error}");
    let clone = journal.clone();
    drop(journal);
    assert!(place.try_open().is_err(), "the clone still writes");
    clone.close().unwrap();
    place.open();
}

#[test]
fn closed_journal_is_continued() {
    let place = TestJournal::three_days();
    let last = place.verify().last.unwrap().seq;
    let journal = place.open();
    assert_eq!(place.fill(&journal, 1)[0].seq, last + 1);
    journal.close().unwrap();
    assert_eq!(place.assert_clean().records, last + 2);
}

#[test]
fn unclosed_journal_is_recorded_and_continued() {
    let (place, day) = left();
    place.open().close().unwrap();
    let lines = place.lines(&day);
    assert_eq!(lines.len(), 14);
    assert_eq!(parse(&lines[12])["entry"], json!({"kind": "recovered", "setAside": [], "unsealed": 2}));
    assert_eq!(parse(&lines[13])["entry"]["kind"], "checkpoint");
    place.assert_clean();
}

#[test]
fn torn_line_is_set_aside_and_recorded() {
    for torn in ["{\"entry\":{", "x", "{}\n", "\0\0\0\0", "\0\0\0\n"] {
        let (place, day) = left();
        let text = fs::read_to_string(place.path(&day)).unwrap();
        fs::write(place.path(&day), format!("{text}{torn}")).unwrap();
        assert_eq!(place.findings().len(), 1, "{torn:?}");

        place.open().close().unwrap();
        let lines = place.lines(&day);
        assert!(lines.concat().starts_with(&text.replace('\n', "")), "{torn:?}");
        let note = &parse(&lines[12])["entry"];
        let bytes = torn.trim_end_matches('\n');
        assert_eq!(note["setAside"][0]["file"], "torn-13-1.txt");
        assert_eq!(note["setAside"][0]["bytes"], json!(bytes.len()));
        assert_eq!(fs::read_to_string(place.path("torn-13-1.txt")).unwrap(), bytes);
        place.assert_clean();
        fs::remove_file(place.path("torn-13-1.txt")).unwrap();
        assert_eq!(place.findings(), [format!("{day}:13 set_aside")]);
    }
}

#[test]
fn torn_lines_of_two_crashes_are_both_recorded() {
    let (place, day) = left();
    fs::write(place.path("torn-13-1.txt"), "of the crash before").unwrap();
    let text = fs::read_to_string(place.path(&day)).unwrap();
    fs::write(place.path(&day), format!("{text}torn again")).unwrap();
    place.open().close().unwrap();
    let note = parse(&place.lines(&day)[12])["entry"]["setAside"].clone();
    assert_eq!(note[0]["file"], "torn-13-1.txt");
    assert_eq!(note[1]["file"], "torn-13-2.txt");
    assert_eq!(fs::read_to_string(place.path("torn-13-2.txt")).unwrap(), "torn again");
    place.assert_clean();
}

#[test]
fn edited_tail_is_refused() {
    let (place, day) = left();
    let mut lines = place.lines(&day);
    lines[11] = lines[11].replace("test", "tesu");
    place.put_lines(&day, &lines);
    check_refused(&place, "its content was changed");
}

#[test]
fn deleted_line_of_the_tail_is_refused() {
    let (place, day) = left();
    let mut lines = place.lines(&day);
    lines.remove(10);
    place.put_lines(&day, &lines);
    check_refused(&place, "record 11 is missing");
}

#[test]
fn garbage_before_the_last_line_is_refused() {
    let (place, day) = left();
    let mut lines = place.lines(&day);
    lines.insert(11, "garbage".to_owned());
    place.put_lines(&day, &lines);
    check_refused(&place, "a line is not a record");
}

#[test]
fn torn_line_before_a_later_day_is_refused() {
    let place = TestJournal::new();
    let journal = place.open();
    place.fill(&journal, 2);
    place.pass(DAY);
    place.fill(&journal, 2);
    drop(journal);
    let first = place.path("2026-11-16.jsonl");
    let content = fs::read(&first).unwrap();
    fs::write(&first, [content, b"torn".to_vec()].concat()).unwrap();
    // The last checkpoint is the last line of the first day, so the tail begins there.
    check_refused(&place, "a line is not a record");
    assert_eq!(place.findings(), ["2026-11-16.jsonl:4 torn_line"]);
}

#[test]
fn changed_checkpoint_is_refused() {
    let (place, day) = left();
    let mut lines = place.lines(&day);
    let mut record = parse(&lines[9]);
    record["entry"]["peaks"][0] = record["prev"].clone();
    rehash(&mut record);
    lines[9] = write(&record);
    let prev = record["hash"].as_str().unwrap().to_owned();
    rechain(&mut lines, 10, prev);
    place.put_lines(&day, &lines);
    check_refused(&place, "the last checkpoint");
}

#[test]
fn truncated_tail_is_refused() {
    let place = TestJournal::three_days();
    let mut lines = place.lines("2026-11-18.jsonl");
    lines.pop();
    place.put_lines("2026-11-18.jsonl", &lines);
    check_refused(&place, "it ends with record 38, but had 39");
    fs::remove_file(place.path("2026-11-18.jsonl")).unwrap();
    check_refused(&place, "it ends with record 26, but had 39");
}

#[test]
fn records_added_to_a_closed_journal_are_refused() {
    let place = TestJournal::three_days();
    let file = "2026-11-18.jsonl";
    let mut lines = place.lines(file);
    let last = parse(lines.last().unwrap());
    let mut record = parse(&lines[0]);
    record["seq"] = json!(40);
    record["prev"] = last["hash"].clone();
    record["time"] = last["time"].clone();
    rehash(&mut record);
    lines.push(write(&record));
    place.put_lines(file, &lines);
    check_refused(&place, "records after 39 were added after it was closed");
    lines.pop();
    lines.push("torn".to_owned());
    place.put_lines(file, &lines);
    check_refused(&place, "added after the journal was closed");
}

#[test]
fn journal_without_its_head_is_refused() {
    let place = TestJournal::three_days();
    fs::remove_file(place.path("head.json")).unwrap();
    check_refused(&place, "`head.json` is missing");
    fs::write(place.path("head.json"), "{}").unwrap();
    check_refused(&place, "`head.json` was changed");
}

#[test]
fn journal_of_another_key_is_refused() {
    let place = TestJournal::three_days();
    let opened = Journal::open(&place.folder(), place.other_key(), options(4), place.clock());
    assert!(opened.unwrap_err().to_string().contains("signed by another key"));
}

#[test]
fn directory_that_others_may_write_to_is_refused() {
    let place = TestJournal::three_days();
    fs::set_permissions(place.folder(), fs::Permissions::from_mode(0o770)).unwrap();
    check_refused(&place, "others may write to the directory");
}

#[test]
fn symlink_is_not_written_to() {
    let place = TestJournal::new();
    place.open().close().unwrap();
    let target = place.folder().with_extension("target");
    fs::write(&target, "").unwrap();
    symlink(&target, place.path("2026-11-16.jsonl")).unwrap();
    let journal = Journal::open(&place.folder(), place.key(), options(4), place.clock());
    let outcome = journal.and_then(|journal| journal.append(&json!({})));
    assert!(matches!(outcome, Err(JournalError::Io { .. })), "{outcome:?}");
    assert_eq!(fs::read(&target).unwrap(), b"");
}

#[test]
fn only_the_tail_is_checked_on_opening() {
    let place = TestJournal::three_days();
    let mut lines = place.lines("2026-11-16.jsonl");
    lines.swap(1, 2);
    place.put_lines("2026-11-16.jsonl", &lines);
    place.open().close().unwrap();
    assert!(!place.verify().is_clean());
}

#[test]
fn user_entry_that_looks_like_a_checkpoint_is_skipped() {
    let place = TestJournal::new();
    let journal = place.open();
    place.fill(&journal, 5);
    journal.append(&json!({"key": "ed25519:", "text": "\n{\"entry\":{\"key\":\"ed25519:"})).unwrap();
    drop(journal);
    let journal = place.open();
    place.fill(&journal, 1);
    journal.close().unwrap();
    place.assert_clean();
}

#[test]
fn checkpoint_far_from_the_end_is_found() {
    let place = TestJournal::new();
    let open = || Journal::open(&place.folder(), place.key(), options(1_000_000), place.clock()).unwrap();
    let journal = open();
    place.fill(&journal, 3);
    journal.checkpoint().unwrap();
    for _ in 0..40 {
        journal.append(&json!({"long": "x".repeat(100_003)})).unwrap();
    }
    drop(journal);
    open().close().unwrap();
    let report = place.assert_clean();
    assert_eq!((report.records, report.checkpoints), (46, 2));
}

#[test]
fn empty_file_of_a_later_day_is_accepted() {
    let place = TestJournal::three_days();
    fs::write(place.path("2026-11-19.jsonl"), "").unwrap();
    let journal = place.open();
    place.fill(&journal, 2);
    place.pass(DAY);
    place.fill(&journal, 2);
    journal.close().unwrap();
    place.assert_clean();
    let records = read(&place.folder(), TimeRange::default()).unwrap();
    assert_eq!(records.flatten().count(), 39 + 3 + 3);
}
