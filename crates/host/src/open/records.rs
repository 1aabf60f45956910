//! Records of the gateway that do not belong to a call, and the health of the journal.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolgate_gate::{Candidate, LiveTool};

use super::{OpenError, Toolgate};
use crate::rollback::remember_compared;

impl Toolgate {
    /// Records an event that is not a call.
    pub fn note(&self, entry: &Value) -> Result<(), OpenError> {
        Ok(self.journal.write(entry)?)
    }

    /// Records that a tool is published or unpublished. `kind` is `tool.published` or `tool.unpublished`.
    pub fn note_publication(&self, kind: &str, tool: &LiveTool, by: &str) -> Result<(), OpenError> {
        let tool = json!({ "name": tool.name(), "digest": tool.digest() });
        self.note(&json!({ "kind": kind, "tool": tool, "by": by }))
    }

    /// Records that a tool is published, with the codes of the findings that its operator accepted.
    pub fn note_published(&self, candidate: &Candidate, by: &str) -> Result<(), OpenError> {
        let tool = json!({ "name": candidate.tool.name(), "digest": candidate.tool.digest() });
        let mut entry = json!({ "kind": "tool.published", "tool": tool, "by": by });
        if let (false, Some(members)) = (candidate.accepted.is_empty(), entry.as_object_mut()) {
            members.insert("accepted".to_owned(), json!(candidate.accepted));
        }
        self.note(&entry)
    }

    /// How far the system clock is behind the newest record of the journal. `None` below one second, which is usual.
    pub fn clock_behind(&self) -> Option<Duration> {
        Some(self.journal.files.clock_behind()).filter(|behind| *behind >= Duration::from_secs(1))
    }

    /// The failure of the last write to the journal. `None`: it succeeded.
    pub fn journal_problem(&self) -> Option<String> {
        self.journal.problem()
    }

    /// The number of failed writes since the start, and the last failure. Includes failures that were over before a call of
    /// [`journal_problem`](Self::journal_problem).
    pub fn journal_failures(&self) -> (u64, Option<String>) {
        self.journal.failures()
    }

    /// Journals that were skipped because they are not in the list of journals. They come from an older version, or were
    /// planted.
    pub fn unlisted_journals(&self) -> &[String] {
        &self.journal.unlisted
    }

    /// Retries the journal after a failure, and returns the failure if it persists. Call it every second: a gateway that is not
    /// ready gets no calls, so no other write would show that the journal works again.
    pub fn try_journal(&self) -> Option<String> {
        let _reported_below = self.journal.recover();
        self.journal.problem()
    }

    /// Signs the records so far. `audit verify` then detects later changes of them.
    pub fn checkpoint(&self) -> Result<(), OpenError> {
        let signed = self.journal.files.checkpoint();
        if let Err(error) = &signed {
            // Signing failed. Check separately whether records can still be written.
            let _seen_by_problem = self.journal.probe(&error.to_string());
        }
        // If this fails, the next start compares more records.
        let _ = remember_compared(&self.state, SystemTime::now());
        Ok(signed?)
    }
}
