//! Records of the gateway that are not about a call, and the health of the journal.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolgate_gate::{Candidate, LiveTool};

use super::{OpenError, Toolgate};
use crate::rollback::remember_compared;

impl Toolgate {
    /// Writes an event that is not a call.
    pub fn note(&self, entry: &Value) -> Result<(), OpenError> {
        Ok(self.journal.write(entry)?)
    }

    /// Writes down that a tool may be served from now on, or may not any more: `tool.published`, `tool.unpublished`.
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

    /// How far the system clock is behind the newest record of the journal, from a second on. Smaller steps are usual.
    pub fn clock_behind(&self) -> Option<Duration> {
        Some(self.journal.files.clock_behind()).filter(|behind| *behind >= Duration::from_secs(1))
    }

    /// Why the journal could not be written at the last try, if it could not.
    pub fn journal_problem(&self) -> Option<String> {
        self.journal.problem()
    }

    /// How many records could not be written since the start, and why the last could not. Also counts what was over
    /// before anybody asked for the [problem](Self::journal_problem).
    pub fn journal_failures(&self) -> (u64, Option<String>) {
        self.journal.failures()
    }

    /// Journals that this one passed over because they are not in the list of journals. An older version began them, or
    /// somebody put them there.
    pub fn unlisted_journals(&self) -> &[String] {
        &self.journal.unlisted
    }

    /// Tries the journal again after a failure, and returns the failure if it persists. Call it every second: a gateway that is
    /// not ready gets no calls, whose records would show that it recovered.
    pub fn try_journal(&self) -> Option<String> {
        let _told_below = self.journal.recover();
        self.journal.problem()
    }

    /// Signs the records so far. A later change of them is detected.
    pub fn checkpoint(&self) -> Result<(), OpenError> {
        let signed = self.journal.files.checkpoint();
        if let Err(error) = &signed {
            // Whether calls can be written is another question than whether they can be signed.
            let _seen_by_problem = self.journal.probe(&error.to_string());
        }
        // If this fails, the next start compares more.
        let _ = remember_compared(&self.state, SystemTime::now());
        Ok(signed?)
    }
}
