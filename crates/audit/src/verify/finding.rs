//! How is what was found told?

use std::{fmt, time::Duration};

use serde::Serialize;

use crate::{Position, PublicKey, listing::Listing};

/// The outcome of a check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    pub records: u64,
    /// Checkpoints that are signed and fit.
    pub checkpoints: u64,
    /// Records after the last checkpoint: only the chain holds these, and whoever can write can redo a chain.
    pub unsealed: u64,
    /// Whether the head says that nothing follows. Else a writer is at work, or died.
    pub closed: bool,
    pub first: Option<Position>,
    pub last: Option<Position>,
    /// The key that signed: the trusted one if one was given, else the one that the journal itself names.
    pub key: Option<PublicKey>,
    /// Records that were written while the system clock was behind an earlier record. Not a finding: clocks are set.
    pub clock_behind: ClockBehind,
    pub findings: Vec<Finding>,
    /// What head and checkpoints say of the list of journals, the one that knows most of it.
    #[serde(skip)]
    pub(crate) listing: Option<Listing>,
    /// The record that the list says was found here, if it is not here.
    #[serde(skip)]
    pub(crate) lacks: Option<Position>,
    /// Findings beyond those listed.
    pub more: u64,
}

/// The records that were written with a clock that was behind, and by how much it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClockBehind {
    pub records: u64,
    /// Numbers of the first and the last of them; 0 if there are none.
    pub first: u64,
    pub last: u64,
    /// The most that the clock was behind.
    pub seconds: u64,
}

impl ClockBehind {
    pub(crate) fn add(&mut self, seq: u64, behind: Duration) {
        if self.records == 0 {
            self.first = seq;
        }
        self.records += 1;
        self.last = seq;
        self.seconds = self.seconds.max(behind.as_secs());
    }
}

/// One thing that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub kind: FindingKind,
    /// Empty when it concerns the journal as a whole.
    pub file: String,
    /// Zero when it concerns the file as a whole.
    pub line: u64,
    pub seq: Option<u64>,
    pub what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    Checkpoint,
    Edited,
    Expected,
    FileName,
    ForeignKey,
    ForgedTail,
    Head,
    JournalMissing,
    JournalName,
    JournalUnlisted,
    ListCut,
    Missing,
    NotARecord,
    NotCanonical,
    OutOfOrder,
    SetAside,
    TimeBackwards,
    TornLine,
    Truncated,
    Unlinked,
    Unreadable,
    WrongDay,
}

impl Report {
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    pub(crate) fn has(&self, kind: FindingKind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind)
    }

    pub(crate) fn add(&mut self, finding: Finding) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        } else {
            self.more += 1;
        }
    }
}

impl Finding {
    pub fn remedy(&self) -> &'static str {
        self.kind.remedy()
    }
}

impl FindingKind {
    /// Stable: scripts depend on these words.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Edited => "edited",
            Self::Expected => "expected",
            Self::FileName => "file_name",
            Self::ForeignKey => "foreign_key",
            Self::ForgedTail => "forged_tail",
            Self::Head => "head",
            Self::JournalMissing => "journal_missing",
            Self::JournalName => "journal_name",
            Self::JournalUnlisted => "journal_unlisted",
            Self::ListCut => "list_cut",
            Self::Missing => "missing",
            Self::NotARecord => "not_a_record",
            Self::NotCanonical => "not_canonical",
            Self::OutOfOrder => "out_of_order",
            Self::SetAside => "set_aside",
            Self::TimeBackwards => "time_backwards",
            Self::TornLine => "torn_line",
            Self::Truncated => "truncated",
            Self::Unlinked => "unlinked",
            Self::Unreadable => "unreadable",
            Self::WrongDay => "wrong_day",
        }
    }

    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Edited | Self::NotARecord | Self::NotCanonical | Self::TimeBackwards | Self::SetAside => {
                "do not rely on this record; compare the file with a backup"
            }
            Self::Missing | Self::Truncated | Self::Expected => {
                "look for the missing records in a backup; what stood there cannot be computed"
            }
            Self::OutOfOrder | Self::Unlinked | Self::ForgedTail => {
                "do not rely on the records from here to the next good checkpoint; compare with a backup"
            }
            Self::Checkpoint | Self::ForeignKey => {
                "do not rely on the records before this one that no other checkpoint covers; compare with a backup"
            }
            Self::Head => "restore `head.json` from a backup; without it a cut end cannot be told",
            Self::JournalMissing => {
                "look for the folder in a backup; nobody but a person takes a journal away"
            }
            Self::JournalName => "give the folder back its name; if that one is taken, this is a copy",
            Self::JournalUnlisted => "do not rely on this journal; find out who put it there",
            Self::ListCut => "restore the list from a backup; without it a missing journal cannot be told",
            Self::TornLine => {
                "if the gateway crashed, start it: it sets the line aside and notes it; else compare with a backup"
            }
            Self::FileName | Self::WrongDay => "give the file back its name",
            Self::Unreadable => "run as the user who owns the journal, and see that the folder is whole",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => {}
            (file, 0) => write!(f, "{file}: ")?,
            (file, line) => write!(f, "{file}:{line}: ")?,
        }
        write!(f, "{} ({}); {}", self.what, self.kind.code(), self.remedy())
    }
}

const MAX_FINDINGS: usize = 1000;
