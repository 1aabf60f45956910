//! Checks that a record follows the one before it.

use std::fmt;

use crate::{RecordDigest, RecordPosition, record::RecordLine, stamp::Stamp};

/// The end of a chain, which the next record must continue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub(crate) last: RecordPosition,
    pub(crate) stamp: Stamp,
}

/// Why a record does not continue the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChainBreak {
    Edited,
    NotCanonical,
    Missing { from: u64, to: u64 },
    Repeated { expected: u64 },
    Unlinked { prev: RecordDigest },
    TimeBackwards { before: Stamp },
}

impl Chain {
    pub(crate) const START: Self = Self { last: RecordPosition::START, stamp: Stamp::EPOCH };

    /// All reasons why the record does not continue the chain; empty for a valid one.
    pub(crate) fn breaks(&self, line: &RecordLine<'_>) -> Vec<ChainBreak> {
        let mut breaks = Vec::new();
        if !line.is_intact() {
            breaks.push(ChainBreak::Edited);
        }
        if !line.is_canonical() {
            breaks.push(ChainBreak::NotCanonical);
        }
        let (expected, seq) = (self.last.seq + 1, line.position.seq);
        if seq > expected {
            breaks.push(ChainBreak::Missing { from: expected, to: seq - 1 });
        } else if seq < expected {
            breaks.push(ChainBreak::Repeated { expected });
        } else if line.prev != self.last.hash {
            breaks.push(ChainBreak::Unlinked { prev: self.last.hash });
        }
        if line.time.stamp < self.stamp {
            breaks.push(ChainBreak::TimeBackwards { before: self.stamp });
        }
        breaks
    }

    /// Continues from this record, valid or not.
    pub(crate) fn advance(&mut self, position: RecordPosition, stamp: Stamp) {
        self.last = position;
        self.stamp = stamp;
    }
}

impl fmt::Display for ChainBreak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edited => f.write_str("its content was changed"),
            Self::NotCanonical => f.write_str("its entry is not canonical JSON"),
            Self::Missing { from, to } if from == to => write!(f, "record {from} is missing before it"),
            Self::Missing { from, to } => write!(f, "records {from} to {to} are missing before it"),
            Self::Repeated { expected } => write!(f, "record {expected} is expected here"),
            Self::Unlinked { prev } => write!(f, "it does not follow the record before it, `{prev}`"),
            Self::TimeBackwards { before } => {
                write!(f, "its time is before that of an earlier record, `{}`", before.text())
            }
        }
    }
}
