//! The journal on disk, as the gate writes to it.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::json;
use toolgate_audit::JournalError;
use toolgate_gate::{CallRecord, Journal};

/// The chained files behind the gate's port.
#[derive(Clone, Debug)]
pub struct FileJournal {
    pub files: toolgate_audit::Journal,
    sync: toolgate_audit::Sync,
    /// Journals that were passed over, since no list names them.
    pub unlisted: Vec<String>,
    /// What went wrong at the last try, whoever wrote.
    problem: Arc<Mutex<Option<String>>>,
}

impl FileJournal {
    pub fn new(files: toolgate_audit::Journal, sync: toolgate_audit::Sync) -> Self {
        Self { files, sync, unlisted: Vec::new(), problem: Arc::default() }
    }

    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Everything that a gateway writes goes through here, so that it is known whether it can.
    pub fn write(&self, entry: &impl Serialize) -> Result<(), JournalError> {
        let written = self.files.append(entry).map(drop);
        let now = written.as_ref().err().map(ToString::to_string);
        let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        if *problem != now {
            *problem = now;
        }
        written
    }

    /// After a problem: is it over? While calls are kept away nobody else would find out.
    pub fn probe(&self, problem: &str) -> Result<(), JournalError> {
        self.write(&json!({ "kind": "journal.probed", "problem": problem }))
    }
}

impl Journal for FileJournal {
    fn append(&self, record: &CallRecord) -> Result<(), String> {
        self.write(record).map_err(|error| error.to_string())
    }

    fn waits_for_disk(&self) -> bool {
        self.sync == toolgate_audit::Sync::Disk
    }
}
