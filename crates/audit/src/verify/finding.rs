//! Findings of a verification, with codes and remedies.

use std::{fmt, time::Duration};

use serde::Serialize;

use crate::{PublicKey, RecordPosition, listing::JournalListing};

/// The result of a verification.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    pub records: u64,
    /// Valid checkpoints.
    pub checkpoints: u64,
    /// Records after the last checkpoint. Only the chain protects them, and a person with write access can recompute a
    /// chain.
    pub unsealed: u64,
    /// Whether the head says that no record follows. Otherwise a writer is running or crashed.
    pub closed: bool,
    pub first: Option<RecordPosition>,
    pub last: Option<RecordPosition>,
    /// The signing key: the trusted one if given, otherwise the one that the journal names.
    pub key: Option<PublicKey>,
    /// Records written while the system clock was behind an earlier record. Not a finding, because clocks are adjusted.
    pub clock_behind: ClockBehind,
    pub findings: Vec<JournalFinding>,
    /// The listing of the head or of a checkpoint, the one that knows more of the list.
    #[serde(skip)]
    pub(crate) listing: Option<JournalListing>,
    /// The record that must be here according to the list, if it is missing.
    #[serde(skip)]
    pub(crate) lacks: Option<RecordPosition>,
    /// Findings beyond those listed.
    pub more: u64,
}

/// The records written while the clock was behind, and the largest difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClockBehind {
    pub records: u64,
    /// Numbers of the first and last such record; 0 if there are none.
    pub first: u64,
    pub last: u64,
    /// The largest difference.
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

/// One flaw of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JournalFinding {
    pub kind: FindingKind,
    /// Empty if it concerns the whole journal.
    pub file: String,
    /// Zero if it concerns the whole file.
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

    pub(crate) fn add(&mut self, finding: JournalFinding) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        } else {
            self.more += 1;
        }
    }
}

impl JournalFinding {
    pub fn remedy(&self) -> &'static str {
        self.kind.remedy()
    }
}

impl FindingKind {
    /// Stable: scripts depend on these codes.
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
                "look for the missing records in a backup; they cannot be recomputed"
            }
            Self::OutOfOrder | Self::Unlinked | Self::ForgedTail => {
                "do not rely on the records from here to the next good checkpoint; compare with a backup"
            }
            Self::Checkpoint | Self::ForeignKey => {
                "do not rely on the records before this one that no other checkpoint covers; compare with a backup"
            }
            Self::Head => {
                "restore `head.json` from a backup; without it, a truncated journal cannot be detected"
            }
            Self::JournalMissing => "look for the directory in a backup; the gateway never removes a journal",
            Self::JournalName => "rename the directory back; if that name is taken, this is a copy",
            Self::JournalUnlisted => "do not rely on this journal; find out who put it there",
            Self::ListCut => {
                "restore the list from a backup; without it, a missing journal cannot be detected"
            }
            Self::TornLine => {
                "if the gateway crashed, start it: it moves the line to a separate file and records that; otherwise compare with a backup"
            }
            Self::FileName | Self::WrongDay => "rename the file back",
            Self::Unreadable => {
                "run as the user who owns the journal, and check that the directory is complete"
            }
        }
    }
}

impl fmt::Display for JournalFinding {
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
