//! Chooses the journal directory of a process. Several processes can write at the same time, each to another journal.

use std::{sync::Arc, time::SystemTime};

use serde_json::Value;
use toolgate_audit::{ClockFn, Journal, JournalError, JournalOptions, Key};
use toolgate_config::{Config, model::AuditSync};

use crate::{journal::FileJournal, open::OpenError};

/// The kind of process that writes a journal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JournalOwner {
    Gateway,
    /// A CLI command, which may run while a gateway runs.
    Command,
}

impl JournalOwner {
    /// The directory in the state directory.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Gateway => "journal",
            Self::Command => "journal-commands",
        }
    }
}

pub fn open_journal(config: &Config, journal_owner: JournalOwner) -> Result<FileJournal, OpenError> {
    let sync = match config.audit.sync {
        AuditSync::Write => toolgate_audit::Durability::Write,
        AuditSync::Disk => toolgate_audit::Durability::Disk,
    };
    let options = JournalOptions { checkpoint_every: config.audit.checkpoint_every, sync };
    let (files, unlisted) = open_free_journal(config, journal_owner, options)?;
    let mut journal = FileJournal::new(files, sync);
    journal.unlisted = unlisted;
    Ok(journal)
}

/// Records an action of a command that opens no gateway.
pub fn note_command(config: &Config, entry: &Value) -> Result<(), OpenError> {
    let journal = open_journal(config, JournalOwner::Command)?;
    journal.write(entry)?;
    Ok(journal.files.close()?)
}

/// Opens the first journal that no other process writes to: clients may each start a gateway on the same state. Skips a journal
/// of an older version that is not in the list of journals, and returns its name. It cannot be verified, and must not prevent
/// the gateway from starting.
fn open_free_journal(
    config: &Config,
    journal_owner: JournalOwner,
    options: JournalOptions,
) -> Result<(Journal, Vec<String>), JournalError> {
    let (mut number, mut unlisted) = (1, Vec::new());
    loop {
        let key = Key::open_or_create(&config.state.join("keys/journal.key"))?;
        let clock: ClockFn = Arc::new(SystemTime::now);
        let first = journal_owner.folder();
        let name = if number == 1 { first.to_owned() } else { format!("{first}-{number}") };
        match Journal::open(&config.state.join(name), key, options, clock) {
            Err(JournalError::InUse { .. }) if number < MOST_JOURNALS => {}
            Err(JournalError::Unlisted { name }) if number < MOST_JOURNALS => unlisted.push(name),
            other => return Ok((other?, unlisted)),
        }
        number += 1;
    }
}

impl From<JournalError> for OpenError {
    fn from(error: JournalError) -> Self {
        Self { part: "journal", problem: error.to_string() }
    }
}

/// A bound for the search. More gateways on one state are not expected.
const MOST_JOURNALS: u32 = 64;
