//! The journal on disk, behind the gate's journal port. Remembers failed writes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::json;
use toolgate_audit::JournalError;
use toolgate_gate::{CallJournal, CallRecord};

/// A hash-chained journal with its write failures.
#[derive(Clone, Debug)]
pub struct FileJournal {
    pub files: toolgate_audit::Journal,
    sync: toolgate_audit::Durability,
    /// Journals that were skipped because the list of journals does not contain them.
    pub unlisted: Vec<String>,
    failures: Arc<Mutex<Failures>>,
    /// Held while a probe is written after a failure. Ensures that one record reports the failure.
    probing: Arc<Mutex<()>>,
}

#[derive(Debug, Default)]
struct Failures {
    count: u64,
    /// The last failure, until a probe is written.
    problem: Option<String>,
    /// The last failure, also after the probe.
    last: Option<String>,
}

impl FileJournal {
    pub fn new(files: toolgate_audit::Journal, sync: toolgate_audit::Durability) -> Self {
        Self { files, sync, unlisted: Vec::new(), failures: Arc::default(), probing: Arc::default() }
    }

    /// The number of failed writes so far, and the last failure.
    pub fn failures(&self) -> (u64, Option<String>) {
        let failures = lock(&self.failures);
        (failures.count, failures.last.clone())
    }

    pub fn problem(&self) -> Option<String> {
        lock(&self.failures).problem.clone()
    }

    /// Writes a record. All records of a gateway are written by this method, so it sees every failure.
    pub fn write(&self, entry: &impl Serialize) -> Result<(), JournalError> {
        // The first record after a failure must report that records before it are missing.
        self.recover()?;
        self.append_noting(entry)
    }

    /// Writes a probe if the last write failed. Also called without a record to write: a gateway that refuses calls would not
    /// notice otherwise that the journal works again.
    pub fn recover(&self) -> Result<(), JournalError> {
        if lock(&self.failures).problem.is_none() {
            return Ok(());
        }
        let _alone = lock(&self.probing);
        // Another thread may have written the probe meanwhile.
        self.problem().map_or(Ok(()), |problem| self.note_probe(&problem))
    }

    /// Checks whether records can be written after another part of the journal failed.
    pub fn probe(&self, problem: &str) -> Result<(), JournalError> {
        let _alone = lock(&self.probing);
        self.note_probe(problem)
    }

    fn note_probe(&self, problem: &str) -> Result<(), JournalError> {
        let before = lock(&self.failures).count;
        self.append_noting(&json!({ "kind": "journal.probed", "problem": problem }))?;
        let mut failures = lock(&self.failures);
        // A write that failed meanwhile may have failed after the probe.
        if failures.count == before {
            failures.problem = None;
        }
        Ok(())
    }

    fn append_noting(&self, entry: &impl Serialize) -> Result<(), JournalError> {
        let written = self.files.append(entry).map(drop);
        if let Err(error) = &written {
            let mut failures = lock(&self.failures);
            failures.count += 1;
            failures.problem = Some(error.to_string());
            failures.last = Some(error.to_string());
        }
        written
    }
}

impl CallJournal for FileJournal {
    fn append(&self, record: &CallRecord) -> Result<(), String> {
        self.write(record).map_err(|error| error.to_string())
    }

    fn waits_for_disk(&self) -> bool {
        self.sync == toolgate_audit::Durability::Disk
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::SystemTime};

    use serde_json::Value;
    use toolgate_audit::{Durability, JournalOptions, Key, TimeRange};

    use super::*;

    fn journal(folder: &Path) -> FileJournal {
        let key = Key::open_or_create(&folder.join("key")).unwrap();
        let clock = Arc::new(SystemTime::now);
        let files =
            toolgate_audit::Journal::open(&folder.join("journal"), key, JournalOptions::default(), clock);
        FileJournal::new(files.unwrap(), Durability::Write)
    }

    fn entries(folder: &Path) -> Vec<Value> {
        let records = toolgate_audit::read(&folder.join("journal"), TimeRange::default()).unwrap();
        records.map(|record| record.unwrap().entry).collect()
    }

    /// Without it, missing records would look like a time without calls.
    #[test]
    fn first_record_after_a_failure_reports_it() {
        let folder = tempfile::tempdir().unwrap();
        let journal = journal(folder.path());
        journal.write(&json!("no record")).unwrap_err();
        let problem = journal.problem().unwrap();
        for number in [1, 2] {
            journal.write(&json!({ "kind": "test", "number": number })).unwrap();
        }
        assert_eq!(journal.problem(), None);
        journal.recover().unwrap();
        let expected = [
            json!({ "kind": "journal.probed", "problem": problem }),
            json!({ "kind": "test", "number": 1 }),
            json!({ "kind": "test", "number": 2 }),
        ];
        assert_eq!(entries(folder.path()), expected);
    }

    /// A slow writer may finish after a failure. Its success does not mean that the journal works now.
    #[test]
    fn failure_during_a_write_is_kept_when_that_write_succeeds() {
        struct Slow<'j>(&'j FileJournal);
        impl Serialize for Slow<'_> {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.write(&json!("no record")).unwrap_err();
                json!({ "kind": "test" }).serialize(serializer)
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let journal = journal(folder.path());
        journal.write(&Slow(&journal)).unwrap();
        assert!(journal.problem().is_some());
    }
}
