//! The list of journals: attacks on whole journals and on the list.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use serde_json::json;
use tempfile::TempDir;
use toolgate_audit::{Journal, JournalError, Key, verify, verify_list};

use crate::support::{options, system_clock};

/// A directory with journals, their list, and the key.
struct TestJournals {
    dir: TempDir,
}

impl TestJournals {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// Three journals. The first was open all the time and is closed.
    fn of_three() -> Self {
        let state = Self::new();
        let first = state.open("journal").unwrap();
        fill(&first);
        state.begin("journal-2");
        state.begin("journal-commands");
        fill(&first);
        first.close().unwrap();
        state.assert_clean(3);
        state
    }

    /// Two journals from before the list existed.
    fn of_old() -> Self {
        let state = Self::new();
        let key = fs::read_to_string(fixture().join("key.txt")).unwrap();
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(state.path("key")).unwrap();
        std::io::Write::write_all(&mut file, key.as_bytes()).unwrap();
        state.put_old("journal");
        state.put_old("journal-2");
        state
    }

    fn put_old(&self, name: &str) {
        fs::DirBuilder::new().mode(0o700).create(self.path(name)).unwrap();
        for file in ["2026-11-16.jsonl", "head.json"] {
            fs::copy(fixture().join(file), self.path(name).join(file)).unwrap();
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn open(&self, name: &str) -> Result<Journal, JournalError> {
        let key = Key::open_or_create(&self.path("key")).unwrap();
        Journal::open(&self.path(name), key, options(4), system_clock())
    }

    fn begin(&self, name: &str) {
        let journal = self.open(name).unwrap();
        fill(&journal);
        journal.close().unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_dir_all(self.path(name)).unwrap();
    }

    fn copy(&self, from: &str, to: &str) {
        fs::create_dir(self.path(to)).unwrap();
        for item in fs::read_dir(self.path(from)).unwrap().flatten() {
            fs::copy(item.path(), self.path(to).join(item.file_name())).unwrap();
        }
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.path(LIST)).unwrap().lines().map(str::to_owned).collect()
    }

    fn put_lines(&self, lines: &[String]) {
        fs::write(self.path(LIST), lines.join("\n") + "\n").unwrap();
    }

    /// The number of lines of the list, if there is one, and `journal-2: head.json:0 head` for each finding.
    fn check(&self) -> (Option<u64>, Vec<String>) {
        let key = Some(Key::open_or_create(&self.path("key")).unwrap().public());
        let items = fs::read_dir(self.dir.path()).unwrap().flatten().map(|item| item.path());
        let mut folders: Vec<PathBuf> = items.filter(|path| path.is_dir()).collect();
        folders.sort();
        let reports: Vec<_> =
            folders.into_iter().map(|folder| (folder.clone(), verify(&folder, key, None))).collect();
        let mut findings = Vec::new();
        for (folder, report) in &reports {
            let name = folder.file_name().unwrap().to_string_lossy();
            let show = |one: &toolgate_audit::JournalFinding| {
                format!("{name}: {}:{} {}", one.file, one.line, one.kind.code())
            };
            findings.extend(report.findings.iter().map(show));
        }
        let list = verify_list(self.dir.path(), key, &reports);
        for one in list.iter().flat_map(|list| &list.findings) {
            assert_eq!(one.file, LIST);
            findings.push(format!("{} {}", one.line, one.kind.code()));
        }
        (list.map(|list| list.records), findings)
    }

    #[track_caller]
    fn assert_clean(&self, lines: u64) {
        assert_eq!(self.check(), (Some(lines), Vec::new()));
    }

    #[track_caller]
    fn assert_refused(&self, name: &str, expected: &str) {
        let error = self.open(name).unwrap_err();
        assert!(matches!(error, JournalError::Untrusted { .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// Five records with a checkpoint among them.
fn fill(journal: &Journal) {
    for number in 0..5 {
        journal.append(&json!({"kind": "test", "number": number})).unwrap();
    }
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/journal-1")
}

/// Tampers with three journals and compares the findings.
#[track_caller]
fn check(tamper: impl Fn(&TestJournals), expected: &[&str]) {
    let state = TestJournals::of_three();
    tamper(&state);
    assert_eq!(state.check().1, expected);
}

const LIST: &str = "journals.jsonl";

#[test]
fn journal_is_listed_once() {
    let state = TestJournals::of_three();
    for name in ["journal", "journal-2", "journal"] {
        state.begin(name);
    }
    state.assert_clean(3);
}

#[test]
fn removed_journal_is_detected() {
    check(|state| state.remove("journal-2"), &["2 journal_missing"]);
    check(|state| state.remove("journal"), &["1 journal_missing"]);
    check(
        |state| ["journal", "journal-2", "journal-commands"].iter().for_each(|name| state.remove(name)),
        &["1 journal_missing", "2 journal_missing", "3 journal_missing"],
    );
}

#[test]
fn emptied_journal_is_detected() {
    check(
        |state| {
            state.remove("journal-2");
            fs::create_dir(state.path("journal-2")).unwrap();
            fs::write(state.path("journal-2").join("lock"), "").unwrap();
        },
        &["2 journal_missing"],
    );
}

#[test]
fn renamed_journal_is_detected_and_not_written() {
    let rename = |state: &TestJournals| fs::rename(state.path("journal-2"), state.path("journal-3")).unwrap();
    check(rename, &["journal-3: head.json:0 journal_name", "0 journal_unlisted", "2 journal_missing"]);
    let state = TestJournals::of_three();
    rename(&state);
    state.assert_refused("journal-3", "contains the journal `journal-2`");
}

#[test]
fn copy_under_another_name_is_detected() {
    check(
        |state| state.copy("journal", "journal-3"),
        &["journal-3: head.json:0 journal_name", "0 journal_unlisted"],
    );
    // In place of another journal, whose name it does not have.
    check(
        |state| {
            state.remove("journal-2");
            state.copy("journal", "journal-2");
        },
        &["journal-2: head.json:0 journal_name", "2 journal_missing"],
    );
}

#[test]
fn removed_journal_is_detected_after_another_replaces_it() {
    let state = TestJournals::of_three();
    state.remove("journal-2");
    state.begin("journal-2");
    assert_eq!(state.check(), (Some(4), vec!["2 journal_missing".to_owned()]));
}

#[test]
fn restored_older_journal_is_detected() {
    let state = TestJournals::of_three();
    fs::rename(state.path("journal-2"), state.path("kept")).unwrap();
    state.begin("journal-2");
    state.remove("journal-2");
    fs::rename(state.path("kept"), state.path("journal-2")).unwrap();
    assert_eq!(state.check().1, ["2 journal_missing", "4 journal_missing"]);
    state.assert_refused("journal-2", "an older journal replaced a newer one");
}

#[test]
fn truncated_list_with_removed_journal_is_detected() {
    let cut = |state: &TestJournals| {
        state.remove("journal-commands");
        let mut lines = state.lines();
        lines.pop();
        state.put_lines(&lines);
    };
    check(cut, &["0 list_cut"]);
    let state = TestJournals::of_three();
    cut(&state);
    state.assert_refused("journal", "ends with line 2, but had 3");
}

#[test]
fn older_head_does_not_hide_a_truncated_list() {
    let state = TestJournals::new();
    let journal = state.open("journal").unwrap();
    let head = fs::read(state.path("journal").join("head.json")).unwrap();
    state.begin("journal-2");
    fill(&journal);
    journal.close().unwrap();
    fs::write(state.path("journal").join("head.json"), head).unwrap();
    state.remove("journal-2");
    state.put_lines(&state.lines()[..1]);
    // The checkpoints are in the chain and know the second line.
    assert_eq!(state.check().1, ["0 list_cut"]);
    state.assert_refused("journal", "ends with line 1, but had 2");
}

#[test]
fn removed_list_is_detected_and_not_recreated() {
    let state = TestJournals::of_three();
    fs::remove_file(state.path(LIST)).unwrap();
    assert_eq!(state.check(), (Some(0), vec!["0 list_cut".to_owned(); 3]));
    state.assert_refused("journal", "ends with line 0, but had 3");
    state.assert_refused("journal-9", "`journals.jsonl`, is missing, but");
}

#[test]
fn edited_reordered_and_missing_lines_are_detected() {
    let found = |edit: &dyn Fn(&mut Vec<String>), expected: &str| {
        let state = TestJournals::of_three();
        let mut lines = state.lines();
        edit(&mut lines);
        state.put_lines(&lines);
        let findings = state.check().1;
        assert!(findings.contains(&expected.to_owned()), "{expected}: {findings:?}");
        assert!(state.open("journal").is_err(), "{expected}");
    };
    found(&|lines| lines[1] = lines[1].replace("journal-2", "journal-9"), "2 edited");
    found(&|lines| lines.swap(0, 1), "2 out_of_order");
    found(&|lines| drop(lines.remove(1)), "2 missing");
    found(&|lines| lines.push(lines[2].clone()), "4 out_of_order");
    found(&|lines| lines[1] = "garbage".to_owned(), "2 not_a_record");
    found(&|lines| lines[0] = lines[0].replace(':', ": "), "1 not_a_record");
    found(&|lines| lines.truncate(0), "1 not_a_record");
}

#[test]
fn any_changed_byte_of_the_list_is_detected() {
    let state = TestJournals::new();
    state.begin("journal");
    let written = fs::read(state.path(LIST)).unwrap();
    for place in (0..written.len()).step_by(5).chain([written.len() - 1]) {
        let mut other = written.clone();
        other[place] ^= 0x01;
        fs::write(state.path(LIST), other).unwrap();
        assert!(!state.check().1.is_empty(), "byte {place}");
    }
    fs::write(state.path(LIST), &written[..written.len() - 1]).unwrap();
    assert!(state.check().1.contains(&"1 torn_line".to_owned()));
}

#[test]
fn line_of_another_key_is_detected() {
    let state = TestJournals::of_three();
    let other = TestJournals::new();
    other.begin("journal");
    let mut lines = state.lines();
    lines[0] = other.lines().remove(0);
    state.put_lines(&lines);
    assert!(state.check().1.contains(&"1 foreign_key".to_owned()));
    state.assert_refused("journal-9", "is not the key");
}

#[test]
fn journals_created_at_the_same_time_are_all_listed() {
    let state = TestJournals::new();
    Key::open_or_create(&state.path("key")).unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let state = &state;
            scope.spawn(move || state.begin(&format!("journal-{number}")));
        }
    });
    state.assert_clean(8);
}

#[test]
fn journals_from_before_the_list_are_clean() {
    assert_eq!(TestJournals::of_old().check(), (None, Vec::new()));
}

#[test]
fn first_list_has_all_existing_journals() {
    let state = TestJournals::of_old();
    state.begin("journal-3");
    state.assert_clean(3);
    state.begin("journal");
    state.assert_clean(3);
    state.remove("journal-2");
    assert_eq!(state.check().1, ["2 journal_missing"]);
}

#[test]
fn old_journal_continues_with_the_list() {
    let state = TestJournals::of_old();
    state.begin("journal");
    state.assert_clean(2);
    assert!(state.lines()[0].contains(r#""kind":"found","name":"journal""#), "{:?}", state.lines());
    // The old head does not allow to continue without the list.
    fs::copy(fixture().join("head.json"), state.path("journal").join("head.json")).unwrap();
    let findings = state.check().1;
    assert!(findings.contains(&"journal: head.json:0 head".to_owned()), "{findings:?}");
}

#[test]
fn old_journal_that_appears_later_is_detected() {
    let state = TestJournals::of_old();
    state.begin("journal");
    state.put_old("journal-7");
    assert_eq!(state.check().1, ["0 journal_unlisted"]);
    // Its head is not rewritten, because that would list it. Other journals are not affected.
    let error = state.open("journal-7").unwrap_err();
    assert!(matches!(&error, JournalError::Unlisted { name } if name == "journal-7"), "{error:?}");
    state.begin("journal-8");
    assert_eq!(state.check().1, ["0 journal_unlisted"]);
    // In place of a listed journal, it is reported as a replacement.
    state.remove("journal-8");
    state.put_old("journal-8");
    state.assert_refused("journal-8", "it is not the one that `journals.jsonl` names");
}
