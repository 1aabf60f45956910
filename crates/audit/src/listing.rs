//! Which journal is this one, and what did its writer know of the others?

use serde::{Deserialize, Serialize};

use crate::Position;

/// A journal's place among those beside it. Heads and checkpoints sign it, so that a folder cannot pass for another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listing {
    /// The line of the list with which this journal began.
    pub(crate) begun: Position,
    /// The last line of the list that the writer had seen: a list without it was cut.
    pub(crate) known: Position,
    /// Of the folder.
    pub(crate) name: String,
}

impl Listing {
    /// The end of a signed text. The name stands last: nothing that it may contain can pass for another line.
    pub(crate) fn signed_text(&self) -> String {
        format!("{}\n{}\n{}\n", self.begun, self.known, self.name)
    }

    /// Whether the writer had not yet seen its own line in the list. It appends nothing before it has.
    pub(crate) fn is_pending(&self) -> bool {
        self.known.seq < self.begun.seq
    }
}

/// The lines that follow a signed text which has a place in the list, and the version that says so.
pub(crate) fn signed_part(listing: Option<&Listing>) -> (u8, String) {
    listing.map_or((1, String::new()), |listing| (2, listing.signed_text()))
}
