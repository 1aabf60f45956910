//! A journal in a folder of its own, with a clock that the test turns.

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
use toolgate_audit::{Clock, Digest, Journal, JournalError, Key, Options, Position, Report, Sync, verify};

pub struct Place {
    dir: TempDir,
    pub time: Arc<AtomicU64>,
}

/// 2026-11-16T03:59:31Z
pub const START: u64 = 1_794_801_571;
pub const DAY: u64 = 24 * 60 * 60;

impl Place {
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

    pub fn clock(&self) -> Clock {
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

    /// Appends `count` records, a second apart.
    pub fn fill(&self, journal: &Journal, count: u64) -> Vec<Position> {
        let append = |number| {
            self.pass(1);
            journal.append(&json!({"kind": "test", "number": number, "text": "ä\"}\n"})).unwrap()
        };
        (0..count).map(append).collect()
    }

    /// Three days, ten records each and a checkpoint after every four; closed.
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

    /// Another folder with the same content and key.
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
        let show = |finding: &toolgate_audit::Finding| {
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

    /// Names of all files that hold something, sorted.
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

pub fn options(checkpoint_every: u64) -> Options {
    Options { checkpoint_every, sync: Sync::Write }
}

pub fn system_clock() -> Clock {
    Arc::new(SystemTime::now)
}

/// Gives a record the digest that its content has; written after the document, not after the code.
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

/// Chains the records of a file anew from line `from` on, as one without the key can; returns the last position.
pub fn rechain(lines: &mut [String], from: usize, mut prev: String) -> Position {
    let mut last = None;
    for line in &mut lines[from..] {
        let mut record = parse(line);
        record["prev"] = json!(prev);
        prev = rehash(&mut record);
        last = Some(Position { seq: record["seq"].as_u64().unwrap(), hash: prev.parse::<Digest>().unwrap() });
        *line = write(&record);
    }
    last.unwrap()
}
