//! Does this record follow the one before it?

use std::fmt;

use crate::{Digest, Position, record::Line, stamp::Stamp};

/// The end of a chain: what the next record must join on to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub(crate) last: Position,
    pub(crate) stamp: Stamp,
}

/// Why a record does not follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    Edited,
    NotCanonical,
    Missing { from: u64, to: u64 },
    Repeated { expected: u64 },
    Unlinked { prev: Digest },
    TimeBackwards { before: Stamp },
}

impl Chain {
    pub(crate) const START: Self = Self { last: Position::START, stamp: Stamp::EPOCH };

    /// Every way in which the record fails to follow; none for a good one.
    pub(crate) fn breaks(&self, line: &Line<'_>) -> Vec<Break> {
        let mut breaks = Vec::new();
        if !line.is_intact() {
            breaks.push(Break::Edited);
        }
        if !line.is_canonical() {
            breaks.push(Break::NotCanonical);
        }
        let (expected, seq) = (self.last.seq + 1, line.position.seq);
        if seq > expected {
            breaks.push(Break::Missing { from: expected, to: seq - 1 });
        } else if seq < expected {
            breaks.push(Break::Repeated { expected });
        } else if line.prev != self.last.hash {
            breaks.push(Break::Unlinked { prev: self.last.hash });
        }
        if line.time.stamp < self.stamp {
            breaks.push(Break::TimeBackwards { before: self.stamp });
        }
        breaks
    }

    /// Goes on from this record, whether it followed or not.
    pub(crate) fn advance(&mut self, position: Position, stamp: Stamp) {
        self.last = position;
        self.stamp = stamp;
    }
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edited => f.write_str("its content is not the one that was written"),
            Self::NotCanonical => f.write_str("its entry is not canonical JSON"),
            Self::Missing { from, to } if from == to => write!(f, "record {from} is missing before it"),
            Self::Missing { from, to } => write!(f, "records {from} to {to} are missing before it"),
            Self::Repeated { expected } => write!(f, "record {expected} should stand here"),
            Self::Unlinked { prev } => write!(f, "it does not follow the record before it, `{prev}`"),
            Self::TimeBackwards { before } => {
                write!(f, "its time is before the one of an earlier record, `{}`", before.text())
            }
        }
    }
}
