//! Which journal does a process write to, beside others that write at the same time?

use std::{sync::Arc, time::SystemTime};

use serde_json::Value;
use toolgate_audit::{Clock, Journal, JournalError, Key, Options};
use toolgate_config::{Config, model::AuditSync};

use crate::{journal::FileJournal, open::OpenError};

/// Which journal is written to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JournalOwner {
    /// The gateway's.
    Gateway,
    /// That of commands.
    Command,
}

impl JournalOwner {
    /// The folder below the state.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Gateway => "journal",
            Self::Command => "journal-commands",
        }
    }
}

pub fn open_journal(config: &Config, journal_owner: JournalOwner) -> Result<FileJournal, OpenError> {
    let sync = match config.audit.sync {
        AuditSync::Write => toolgate_audit::Sync::Write,
        AuditSync::Disk => toolgate_audit::Sync::Disk,
    };
    let options = Options { checkpoint_every: config.audit.checkpoint_every, sync };
    let (files, unlisted) = open_free_journal(config, journal_owner, options)?;
    let mut journal = FileJournal::new(files, sync);
    journal.unlisted = unlisted;
    Ok(journal)
}

/// Writes down what a command did that needs no gateway, before or after it does it.
pub fn note_command(config: &Config, entry: &Value) -> Result<(), OpenError> {
    let journal = open_journal(config, JournalOwner::Command)?;
    journal.write(entry)?;
    Ok(journal.files.close()?)
}

/// Clients that start a gateway each share one state; every such process has a journal of its own, in the first folder
/// that nobody else writes to. One that an older version began is not in the list of journals: it is passed over and named,
/// for nobody can vouch for it, and it must not keep a gateway from starting for good.
fn open_free_journal(
    config: &Config,
    journal_owner: JournalOwner,
    options: Options,
) -> Result<(Journal, Vec<String>), JournalError> {
    let (mut number, mut unlisted) = (1, Vec::new());
    loop {
        let key = Key::open_or_create(&config.state.join("keys/journal.key"))?;
        let clock: Clock = Arc::new(SystemTime::now);
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

/// More gateways than anybody runs on one state at once.
const MOST_JOURNALS: u32 = 64;
