//! Tampering with the files of a journal, and the resulting findings.

use std::{fs, os::unix::fs::symlink, sync::LazyLock};

use proptest::prelude::*;
use serde_json::json;
use toolgate_audit::{Journal, RecordPosition, verify};

use crate::support::{TestJournal, options, parse, rechain, rehash, write};

/// Tampers with a closed journal of three days and compares the findings.
#[track_caller]
fn check(tamper: impl Fn(&TestJournal), expected: &[&str]) {
    let place = TestJournal::three_days();
    place.assert_clean();
    tamper(&place);
    assert_eq!(place.findings(), expected);
}

/// Edits one line of the second day.
fn edit(place: &TestJournal, line: usize, edit: impl Fn(&str) -> String) {
    let mut lines = place.lines(MIDDLE);
    let edited = edit(&lines[line - 1]);
    assert_ne!(edited, lines[line - 1]);
    lines[line - 1] = edited;
    place.put_lines(MIDDLE, &lines);
}

const FIRST: &str = "2026-11-16.jsonl";
const MIDDLE: &str = "2026-11-17.jsonl";
const LAST: &str = "2026-11-18.jsonl";

#[test]
fn unchanged_journal_is_clean() {
    let place = TestJournal::three_days();
    let report = place.assert_clean();
    assert_eq!(place.files(), [FIRST, MIDDLE, LAST, "head.json"]);
    // Ten records a day, and checkpoints after four, after eight and at the end of the day.
    assert_eq!((report.records, report.checkpoints, report.unsealed), (39, 9, 0));
    assert_eq!((report.first.unwrap().seq, report.last.unwrap().seq), (1, 39));
    for file in [FIRST, MIDDLE, LAST] {
        assert_eq!(parse(place.lines(file).last().unwrap())["entry"]["kind"], "checkpoint");
    }
    let unpinned = verify(&place.folder(), None, None);
    assert!(unpinned.is_clean());
    assert_eq!(unpinned.key, Some(place.key().public()));
}

#[test]
fn edited_entry_is_detected() {
    check(|place| edit(place, 2, |line| line.replace("test", "tesu")), &["2026-11-17.jsonl:2 edited"]);
}

#[test]
fn edited_time_is_detected() {
    check(
        |place| edit(place, 2, |line| line.replace("T03:", "T23:")),
        &["2026-11-17.jsonl:2 edited", "2026-11-17.jsonl:3 time_backwards"],
    );
}

#[test]
fn edit_with_new_digest_breaks_the_chain_and_the_next_checkpoint() {
    let forge = |line: &str| {
        let mut record = parse(line);
        record["entry"]["number"] = json!(99);
        rehash(&mut record);
        write(&record)
    };
    check(|place| edit(place, 2, forge), &["2026-11-17.jsonl:3 unlinked", "2026-11-17.jsonl:5 checkpoint"]);
}

#[test]
fn deleted_line_is_detected() {
    check(
        |place| {
            let mut lines = place.lines(MIDDLE);
            lines.remove(1);
            place.put_lines(MIDDLE, &lines);
        },
        &["2026-11-17.jsonl:2 missing", "2026-11-17.jsonl:4 checkpoint"],
    );
}

#[test]
fn deleted_middle_file_is_detected() {
    check(
        |place| fs::remove_file(place.path(MIDDLE)).unwrap(),
        &["2026-11-18.jsonl:1 missing", "2026-11-18.jsonl:5 checkpoint"],
    );
}

#[test]
fn deleted_first_file_is_detected() {
    check(
        |place| fs::remove_file(place.path(FIRST)).unwrap(),
        &["2026-11-17.jsonl:1 missing", "2026-11-17.jsonl:5 checkpoint"],
    );
}

#[test]
fn swapped_lines_are_detected() {
    check(
        |place| {
            let mut lines = place.lines(MIDDLE);
            lines.swap(1, 2);
            place.put_lines(MIDDLE, &lines);
        },
        &[
            "2026-11-17.jsonl:2 missing",
            "2026-11-17.jsonl:3 out_of_order",
            "2026-11-17.jsonl:3 time_backwards",
            "2026-11-17.jsonl:4 missing",
            "2026-11-17.jsonl:5 checkpoint",
        ],
    );
}

#[test]
fn inserted_line_with_valid_chain_is_detected() {
    check(
        |place| {
            let mut lines = place.lines(MIDDLE);
            let mut record = parse(&lines[1]);
            record["prev"] = record["hash"].clone();
            record["seq"] = json!(record["seq"].as_u64().unwrap() + 1);
            rehash(&mut record);
            lines.insert(2, write(&record));
            place.put_lines(MIDDLE, &lines);
        },
        &["2026-11-17.jsonl:4 out_of_order", "2026-11-17.jsonl:6 checkpoint"],
    );
}

#[test]
fn repeated_line_is_detected() {
    check(
        |place| {
            let mut lines = place.lines(MIDDLE);
            lines.insert(2, lines[1].clone());
            place.put_lines(MIDDLE, &lines);
        },
        &["2026-11-17.jsonl:3 out_of_order", "2026-11-17.jsonl:6 checkpoint"],
    );
}

#[test]
fn truncated_tail_is_detected() {
    check(
        |place| {
            let mut lines = place.lines(LAST);
            lines.truncate(10);
            place.put_lines(LAST, &lines);
        },
        &["truncated"],
    );
}

#[test]
fn deleted_last_file_is_detected() {
    check(|place| fs::remove_file(place.path(LAST)).unwrap(), &["truncated"]);
}

#[test]
fn journal_without_files_is_detected() {
    check(
        |place| [FIRST, MIDDLE, LAST].iter().for_each(|file| fs::remove_file(place.path(file)).unwrap()),
        &["truncated"],
    );
}

#[test]
fn forged_tail_after_closing_is_detected() {
    check(
        |place| {
            let mut lines = place.lines(LAST);
            let last = parse(lines.last().unwrap());
            let mut record = parse(&lines[0]);
            record["seq"] = json!(last["seq"].as_u64().unwrap() + 1);
            record["prev"] = last["hash"].clone();
            record["time"] = last["time"].clone();
            rehash(&mut record);
            lines.push(write(&record));
            place.put_lines(LAST, &lines);
        },
        &["head.json:0 forged_tail"],
    );
}

#[test]
fn rewritten_tail_does_not_match_the_checkpoints() {
    check(
        |place| {
            let mut lines = place.lines(LAST);
            let mut record = parse(&lines[5]);
            let prev = parse(&lines[4])["hash"].as_str().unwrap().to_owned();
            record["entry"]["number"] = json!(99);
            lines[5] = write(&record);
            rechain(&mut lines, 5, prev);
            place.put_lines(LAST, &lines);
        },
        &["2026-11-18.jsonl:10 checkpoint", "2026-11-18.jsonl:13 checkpoint", "truncated"],
    );
}

#[test]
fn rewritten_tail_without_checkpoints_does_not_match_the_head() {
    check(
        |place| {
            let mut lines = place.lines(LAST);
            let prev = parse(&lines[4])["hash"].as_str().unwrap().to_owned();
            for line in &mut lines[5..] {
                let mut record = parse(line);
                record["entry"] = json!({"kind": "test"});
                *line = write(&record);
            }
            rechain(&mut lines, 5, prev);
            place.put_lines(LAST, &lines);
        },
        &["truncated"],
    );
}

#[test]
fn checkpoint_of_another_key_is_detected() {
    let place = TestJournal::three_days();
    fs::rename(place.folder(), place.folder().with_extension("ours")).unwrap();
    fs::remove_file(place.folder().with_file_name("journals.jsonl")).unwrap();
    let journal = Journal::open(&place.folder(), place.other_key(), options(4), place.clock()).unwrap();
    place.fill(&journal, 5);
    journal.close().unwrap();
    let day = place.files().remove(0);
    assert_eq!(
        place.findings(),
        [
            "head.json:0 foreign_key".to_owned(),
            format!("{day}:5 foreign_key"),
            format!("{day}:7 foreign_key"),
        ]
    );
    assert!(verify(&place.folder(), Some(place.other_key().public()), None).is_clean());
}

#[test]
fn files_out_of_date_order_are_detected() {
    check(
        |place| fs::rename(place.path(MIDDLE), place.path("2026-11-20.jsonl")).unwrap(),
        &[
            "2026-11-18.jsonl:1 missing",
            "2026-11-18.jsonl:5 checkpoint",
            "2026-11-20.jsonl:1 out_of_order",
            "2026-11-20.jsonl:1 time_backwards",
            "2026-11-20.jsonl:1 wrong_day",
            "2026-11-20.jsonl:5 checkpoint",
        ],
    );
}

#[test]
fn file_of_another_name_is_detected() {
    check(
        |place| fs::rename(place.path(LAST), place.path("november.jsonl")).unwrap(),
        &["november.jsonl:0 file_name", "truncated"],
    );
}

#[test]
fn missing_or_foreign_head_is_detected() {
    check(|place| fs::remove_file(place.path("head.json")).unwrap(), &["head.json:0 head"]);
    check(|place| fs::write(place.path("head.json"), "{}\n").unwrap(), &["head.json:0 head"]);
}

#[test]
fn expected_record_must_exist() {
    let place = TestJournal::three_days();
    let key = place.key().public();
    let last = place.verify().last.unwrap();
    let check = |expect: RecordPosition, findings: usize| {
        let report = verify(&place.folder(), Some(key), Some(expect));
        assert_eq!(report.findings.len(), findings, "{:?}", report.findings);
        assert!(report.findings.iter().all(|finding| finding.kind.code() == "expected"));
    };
    check(last, 0);
    check(RecordPosition { seq: last.seq + 1, ..last }, 1);
    check(RecordPosition { seq: last.seq - 1, ..last }, 1);
}

#[test]
fn rolled_back_journal_is_detected_with_a_kept_position() {
    let place = TestJournal::three_days();
    let old: Vec<_> =
        place.files().iter().map(|name| (name.clone(), fs::read(place.path(name)).unwrap())).collect();
    let journal = place.open();
    let kept = place.fill(&journal, 1)[0];
    journal.close().unwrap();
    for name in place.files() {
        fs::remove_file(place.path(&name)).unwrap();
    }
    for (name, content) in old {
        fs::write(place.path(&name), content).unwrap();
    }
    // The old files match the old head, so nothing in the directory reveals the rollback.
    place.assert_clean();
    assert_eq!(verify(&place.folder(), None, Some(kept)).findings.len(), 1);
}

#[test]
fn symlinks_and_pipes_are_rejected_without_blocking() {
    check(
        |place| {
            fs::rename(place.path(MIDDLE), place.path("elsewhere")).unwrap();
            symlink(place.path("elsewhere"), place.path(MIDDLE)).unwrap();
        },
        &["unreadable"],
    );
    check(
        |place| {
            fs::remove_file(place.path(MIDDLE)).unwrap();
            let made = std::process::Command::new("mkfifo").arg(place.path(MIDDLE)).status();
            assert!(made.unwrap().success());
        },
        &["unreadable"],
    );
}

#[test]
fn missing_directory_is_not_clean() {
    assert_eq!(TestJournal::new().findings(), ["unreadable"]);
}

#[test]
fn findings_beyond_the_list_are_counted() {
    let place = TestJournal::three_days();
    fs::write(place.path(MIDDLE), "x\n".repeat(2000)).unwrap();
    let report = place.verify();
    assert_eq!(report.findings.len(), 1000);
    assert_eq!(report.more, 1002, "a thousand lines, then what is missing");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_changed_byte_of_any_file_is_detected(file in 0_usize..6, at in 0.0_f64..1.0, change in 1_u8..=255) {
        let place = with_a_torn_line();
        let names = place.files();
        prop_assert_eq!(names.len(), 6);
        let mut content = fs::read(place.path(&names[file])).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
            reason = "a place in a small file")]
        let at = (at * content.len() as f64) as usize;
        content[at] ^= change;
        fs::write(place.path(&names[file]), &content).unwrap();
        prop_assert!(!place.verify().is_clean(), "{} at {at} ^ {change}", names[file]);
    }

    #[test]
    fn any_removed_part_of_a_day_is_detected(file in 0_usize..4, from in 0.0_f64..1.0, length in 1_usize..3000) {
        let place = with_a_torn_line();
        let name = &place.files()[file];
        let mut content = fs::read(place.path(name)).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
            reason = "a place in a small file")]
        let from = (from * content.len() as f64) as usize;
        content.drain(from..content.len().min(from + length));
        fs::write(place.path(name), &content).unwrap();
        prop_assert!(!place.verify().is_clean(), "{name} from {from}, {length} bytes");
    }
}

/// A copy of a journal with every kind of file: three days, and a fourth with a crash.
fn with_a_torn_line() -> TestJournal {
    static MADE: LazyLock<TestJournal> = LazyLock::new(|| {
        let place = TestJournal::three_days();
        let journal = place.open();
        place.fill(&journal, 1);
        drop(journal);
        let day = place.files().remove(3);
        let content = fs::read(place.path(&day)).unwrap();
        fs::write(place.path(&day), [content, b"{\"entry\":{\"kind\":".to_vec()].concat()).unwrap();
        place.open().close().unwrap();
        place.assert_clean();
        place
    });
    MADE.copy()
}
