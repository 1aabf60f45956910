//! How many bytes did a function move, whatever of them its caller sees? A copy of a large file takes two short paths.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Files, access::Found, error::Fault, kernel};

#[derive(Debug, Default)]
pub(super) struct Traffic {
    read: AtomicU64,
    written: AtomicU64,
}

impl Traffic {
    pub fn count_written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Files {
    /// What was read whole or written since this was last asked, whichever is more. What is gone through line by line is
    /// not in it, and has a cap of its own.
    pub fn take_moved(&self) -> u64 {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        take(&self.traffic.read).max(take(&self.traffic.written))
    }

    pub(super) fn read_whole(&self, found: &Found, asked: &str, most: usize) -> Result<Vec<u8>, Fault> {
        let bytes = kernel::read_all(&found.handle, asked, most)?;
        self.traffic.read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}
