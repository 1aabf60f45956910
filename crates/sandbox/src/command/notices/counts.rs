//! How many does a command have of what the kernel bounds for nobody, or for all of a user's processes together?
//!
//! What is given back is not seen, so that this counts what was ever asked for. The numbers are far beyond what programs
//! need, and far below what harms the host.

use super::super::CommandLimits;
use crate::{filter::Counted, sys::filter::Answer};

#[derive(Debug)]
pub(crate) struct Counts {
    locks: Count,
}

#[derive(Debug)]
struct Count {
    most: u64,
    had: u64,
}

impl Counts {
    pub(crate) fn of(limits: &CommandLimits) -> Self {
        // Taken at their largest, they are a quarter of the memory.
        Self { locks: Count { most: limits.memory_bytes / 4 / LOCK_BYTES, had: 0 } }
    }

    /// Whether there may be one more, and if not, why.
    pub(crate) fn one_more(&mut self, what: Counted) -> (Answer, Option<String>) {
        let (count, errno, name) = match what {
            Counted::Locks => (&mut self.locks, libc::ENOLCK, "locks of files"),
        };
        if count.had < count.most {
            count.had += 1;
            return (Answer::Continue, None);
        }
        (Answer::Refuse { errno }, Some(format!("more than {} {name}", count.most)))
    }
}

/// More than the kernel takes for one.
const LOCK_BYTES: u64 = 256;
