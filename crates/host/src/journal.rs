//! The journal on disk, as the gate writes to it.

use toolgate_gate::{CallRecord, Journal};

/// The chained files behind the gate's port.
#[derive(Clone, Debug)]
pub struct FileJournal {
    pub files: toolgate_audit::Journal,
    pub sync: toolgate_audit::Sync,
}

impl Journal for FileJournal {
    fn append(&self, record: &CallRecord) -> Result<(), String> {
        self.files.append(record).map(drop).map_err(|error| error.to_string())
    }

    fn waits_for_disk(&self) -> bool {
        self.sync == toolgate_audit::Sync::Disk
    }
}
