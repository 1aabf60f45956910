//! A journal in a temporary directory, with a clock that the test sets.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use toolgate_audit::{
    ClockFn, Durability, Journal, JournalError, JournalOptions, Key, RecordDigest, RecordPosition, Report,
    verify,
};

pub struct TestJournal {
    dir: TempDir,
    pub time: Arc<AtomicU64>,
}

/// 2026-11-16T03:59:31Z
pub const START: u64 = 1_794_801_571;
pub const DAY: u64 = 24 * 60 * 60;

impl TestJournal {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), time: Arc::new(AtomicU64::new(START)) }
    }

    pub fn folder(&self) -> PathBuf {
        self.dir.path().join("journal")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    pub fn key(&self) -> Key {
        Key::open_or_create(&self.dir.path().join("key")).unwrap()
    }

    pub fn other_key(&self) -> Key {
        Key::open_or_create(&self.dir.path().join("other-key")).unwrap()
    }

    pub fn clock(&self) -> ClockFn {
        let time = Arc::clone(&self.time);
        Arc::new(move || UNIX_EPOCH + Duration::from_secs(time.load(Ordering::SeqCst)))
    }

    pub fn pass(&self, seconds: u64) {
        self.time.fetch_add(seconds, Ordering::SeqCst);
    }

    pub fn try_open(&self) -> Result<Journal, JournalError> {
        Journal::open(&self.folder(), self.key(), options(4), self.clock())
    }

    pub fn open(&self) -> Journal {
        self.try_open().unwrap()
    }

    /// Appends `count` records, one second apart.
    pub fn fill(&self, journal: &Journal, count: u64) -> Vec<RecordPosition> {
        let append = |number| {
            self.pass(1);
            journal.append(&json!({"kind": "test", "number": number, "text": "ä\"}\n"})).unwrap()
        };
        (0..count).map(append).collect()
    }

    /// Three days with ten records each and a checkpoint after every four; closed.
    pub fn three_days() -> Self {
        let place = Self::new();
        let journal = place.open();
        for _ in 0..3 {
            place.fill(&journal, 10);
            place.pass(DAY);
        }
        journal.close().unwrap();
        place
    }

    /// Another directory with the same content and key.
    pub fn copy(&self) -> Self {
        let copy = Self::new();
        fs::create_dir(copy.folder()).unwrap();
        for name in self.files() {
            fs::copy(self.path(&name), copy.path(&name)).unwrap();
        }
        fs::copy(self.dir.path().join("key"), copy.dir.path().join("key")).unwrap();
        copy
    }

    pub fn verify(&self) -> Report {
        verify(&self.folder(), Some(self.key().public()), None)
    }

    /// `2026-11-16.jsonl:3 edited` for each finding.
    pub fn findings(&self) -> Vec<String> {
        let show = |finding: &toolgate_audit::JournalFinding| {
            assert!(!finding.remedy().is_empty() && !finding.to_string().contains('\n'));
            match (finding.file.as_str(), finding.line) {
                ("", _) => finding.kind.code().to_owned(),
                (file, line) => format!("{file}:{line} {}", finding.kind.code()),
            }
        };
        self.verify().findings.iter().map(show).collect()
    }

    pub fn lines(&self, file: &str) -> Vec<String> {
        fs::read_to_string(self.path(file)).unwrap().lines().map(str::to_owned).collect()
    }

    pub fn put_lines(&self, file: &str, lines: &[String]) {
        fs::write(self.path(file), lines.join("\n") + "\n").unwrap();
    }

    /// Names of all non-empty files, sorted.
    pub fn files(&self) -> Vec<String> {
        let holds = |path: &Path| fs::metadata(path).is_ok_and(|meta| meta.len() > 0);
        let items = fs::read_dir(self.folder()).unwrap().flatten().filter(|item| holds(&item.path()));
        let mut names: Vec<String> = items.map(|item| item.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[track_caller]
    pub fn assert_clean(&self) -> Report {
        let report = self.verify();
        assert!(report.is_clean(), "{:#?}", report.findings);
        report
    }
}

pub fn options(checkpoint_every: u64) -> JournalOptions {
    JournalOptions { checkpoint_every, sync: Durability::Write }
}

pub fn system_clock() -> ClockFn {
    Arc::new(SystemTime::now)
}

/// Recomputes the digest of a record by the documented rule, without this crate's code.
pub fn rehash(record: &mut Value) -> String {
    record.as_object_mut().unwrap().remove("hash");
    let mut hash = "sha256:".to_owned();
    for byte in Sha256::digest(serde_json_canonicalizer::to_vec(record).unwrap()) {
        write!(hash, "{byte:02x}").unwrap();
    }
    record["hash"] = json!(hash);
    hash
}

pub fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

pub fn write(record: &Value) -> String {
    serde_json_canonicalizer::to_string(record).unwrap()
}

/// Recomputes the chain of a file from line `from`, as an attacker without the key can. Returns the last position.
pub fn rechain(lines: &mut [String], from: usize, mut prev: String) -> RecordPosition {
    let mut last = None;
    for line in &mut lines[from..] {
        let mut record = parse(line);
        record["prev"] = json!(prev);
        prev = rehash(&mut record);
        last = Some(RecordPosition {
            seq: record["seq"].as_u64().unwrap(),
            hash: prev.parse::<RecordDigest>().unwrap(),
        });
        *line = write(&record);
    }
    last.unwrap()
}
