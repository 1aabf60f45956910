//! The journal on disk, as the gate writes to it.

use std::sync::{Arc, Mutex, PoisonError};

use toolgate_gate::{CallRecord, Journal};

/// The chained files behind the gate's port.
#[derive(Clone, Debug)]
pub struct FileJournal {
    pub files: toolgate_audit::Journal,
    sync: toolgate_audit::Sync,
    /// Journals that were passed over, since no list names them.
    pub unlisted: Vec<String>,
    /// What went wrong at the last try.
    problem: Arc<Mutex<Option<String>>>,
}

impl FileJournal {
    pub fn new(files: toolgate_audit::Journal, sync: toolgate_audit::Sync) -> Self {
        Self { files, sync, unlisted: Vec::new(), problem: Arc::default() }
    }

    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Journal for FileJournal {
    fn append(&self, record: &CallRecord) -> Result<(), String> {
        let written = self.files.append(record).map(drop).map_err(|error| error.to_string());
        let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        if problem.as_ref() != written.as_ref().err() {
            *problem = written.clone().err();
        }
        written
    }

    fn waits_for_disk(&self) -> bool {
        self.sync == toolgate_audit::Sync::Disk
    }
}
