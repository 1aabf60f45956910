//! Which journal does a process write to, beside others that write at the same time?

use std::{sync::Arc, time::SystemTime};

use serde_json::Value;
use toolgate_config::{Config, model::AuditSync};

use crate::{journal::FileJournal, open::OpenError};

/// Which journal is written to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Writes {
    /// The gateway's.
    Gateway,
    /// That of commands.
    Command,
}

impl Writes {
    /// The folder below the state.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Gateway => "journal",
            Self::Command => "journal-commands",
        }
    }
}

pub fn open_journal(config: &Config, writes: Writes) -> Result<FileJournal, OpenError> {
    let sync = match config.audit.sync {
        AuditSync::Write => toolgate_audit::Sync::Write,
        AuditSync::Disk => toolgate_audit::Sync::Disk,
    };
    let options = toolgate_audit::Options { checkpoint_every: config.audit.checkpoint_every, sync };
    Ok(FileJournal::new(open_free_journal(config, writes, options)?, sync))
}

/// Writes down what a command did that needs no gateway, before or after it does it.
pub fn note_command(config: &Config, entry: &Value) -> Result<(), OpenError> {
    let journal = open_journal(config, Writes::Command)?;
    journal.files.append(entry)?;
    Ok(journal.files.close()?)
}

/// Clients that start a gateway each share one state; every such process has a journal of its own, in the first folder
/// that nobody else writes to.
fn open_free_journal(
    config: &Config,
    writes: Writes,
    options: toolgate_audit::Options,
) -> Result<toolgate_audit::Journal, toolgate_audit::JournalError> {
    let mut number = 1;
    loop {
        let key = toolgate_audit::Key::open_or_create(&config.state.join("keys/journal.key"))?;
        let clock: toolgate_audit::Clock = Arc::new(SystemTime::now);
        let first = writes.folder();
        let name = if number == 1 { first.to_owned() } else { format!("{first}-{number}") };
        match toolgate_audit::Journal::open(&config.state.join(name), key, options, clock) {
            Err(toolgate_audit::JournalError::InUse { .. }) if number < MOST_JOURNALS => number += 1,
            other => return other,
        }
    }
}

impl From<toolgate_audit::JournalError> for OpenError {
    fn from(error: toolgate_audit::JournalError) -> Self {
        Self { part: "journal", problem: error.to_string() }
    }
}

/// More gateways than anybody runs on one state at once.
const MOST_JOURNALS: u32 = 64;
