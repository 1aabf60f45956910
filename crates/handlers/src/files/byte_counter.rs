//! Counts the bytes that a function moved. The arguments do not show them: a copy of a large file takes two short
//! paths.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Files, access::OpenEntry, error::FileFault, kernel};

#[derive(Debug, Default)]
pub(super) struct ByteCounter {
    read: AtomicU64,
    written: AtomicU64,
}

impl ByteCounter {
    pub fn count_written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Files {
    /// The bytes read completely or written since the last call: the larger number. Line-by-line reads are excluded
    /// and have a separate limit.
    pub fn take_moved(&self) -> u64 {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        take(&self.byte_counter.read).max(take(&self.byte_counter.written))
    }

    pub(super) fn read_whole(
        &self,
        found: &OpenEntry,
        asked: &str,
        most: usize,
    ) -> Result<Vec<u8>, FileFault> {
        let bytes = kernel::read_all(&found.handle, asked, most)?;
        self.byte_counter.read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}
