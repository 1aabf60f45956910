//! The identity of a journal, and what its writer knew of the list of journals.

use serde::{Deserialize, Serialize};

use crate::RecordPosition;

/// A journal's entry in the list. Heads and checkpoints sign it, so one journal directory cannot replace another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JournalListing {
    /// The line of the list that created this journal.
    pub(crate) begun: RecordPosition,
    /// The last line of the list that the writer saw. A list without it was truncated.
    pub(crate) known: RecordPosition,
    /// The name of the directory.
    pub(crate) name: String,
}

impl JournalListing {
    /// The end of a signed text. The name comes last, so its content cannot imitate another line.
    pub(crate) fn signed_text(&self) -> String {
        format!("{}\n{}\n{}\n", self.begun, self.known, self.name)
    }

    /// Whether the writer has not yet seen its own line in the list. It appends nothing before that.
    pub(crate) fn is_pending(&self) -> bool {
        self.known.seq < self.begun.seq
    }
}

/// The version of a signed text, and the lines that a listing adds to it.
pub(crate) fn signed_part(listing: Option<&JournalListing>) -> (u8, String) {
    listing.map_or((1, String::new()), |listing| (2, listing.signed_text()))
}
