//! The journal on disk, as the gate writes to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::json;
use toolgate_audit::JournalError;
use toolgate_gate::{CallJournal, CallRecord};

/// The chained files behind the gate's port.
#[derive(Clone, Debug)]
pub struct FileJournal {
    pub files: toolgate_audit::Journal,
    sync: toolgate_audit::Durability,
    /// Journals that were passed over, since no list names them.
    pub unlisted: Vec<String>,
    failures: Arc<Mutex<Failures>>,
    /// Held by whoever finds out whether a problem is over, so that one record tells of it.
    probing: Arc<Mutex<()>>,
}

#[derive(Debug, Default)]
struct Failures {
    count: u64,
    /// What went wrong last, whoever wrote, until a probe was written.
    problem: Option<String>,
    /// The same, and kept after the probe.
    last: Option<String>,
}

impl FileJournal {
    pub fn new(files: toolgate_audit::Journal, sync: toolgate_audit::Durability) -> Self {
        Self { files, sync, unlisted: Vec::new(), failures: Arc::default(), probing: Arc::default() }
    }

    /// How many records could not be written so far, and why the last could not.
    pub fn failures(&self) -> (u64, Option<String>) {
        let failures = lock(&self.failures);
        (failures.count, failures.last.clone())
    }

    pub fn problem(&self) -> Option<String> {
        lock(&self.failures).problem.clone()
    }

    /// Everything that a gateway writes goes through here, so that it is known whether it can.
    pub fn write(&self, entry: &impl Serialize) -> Result<(), JournalError> {
        // Whoever comes first after a problem: nothing else in the journal would say that records are missing before theirs.
        self.recover()?;
        self.append_noting(entry)
    }

    /// After a problem: is it over? Also for whoever has nothing to write: while calls are kept away nobody else would find out.
    pub fn recover(&self) -> Result<(), JournalError> {
        if lock(&self.failures).problem.is_none() {
            return Ok(());
        }
        let _alone = lock(&self.probing);
        // Somebody else may have found out meanwhile.
        self.problem().map_or(Ok(()), |problem| self.note_probe(&problem))
    }

    /// Can records be written, whatever else went wrong?
    pub fn probe(&self, problem: &str) -> Result<(), JournalError> {
        let _alone = lock(&self.probing);
        self.note_probe(problem)
    }

    fn note_probe(&self, problem: &str) -> Result<(), JournalError> {
        let before = lock(&self.failures).count;
        self.append_noting(&json!({ "kind": "journal.probed", "problem": problem }))?;
        let mut failures = lock(&self.failures);
        // What failed meanwhile may have failed after this was written.
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

    /// Whoever writes first: else a gap in the journal would look like a quiet hour.
    #[test]
    fn the_first_record_after_a_problem_tells_of_it() {
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

    /// A record that was written before the disk was full, and whose writer is slow, says nothing about now.
    #[test]
    fn what_fails_while_a_record_is_written_is_not_forgotten_with_it() {
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
