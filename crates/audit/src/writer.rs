//! Appends records to the journal files, completely or not at all.
//!
//! Everything here happens under the journal's lock. The state changes only after a successful write. A failed write is
//! truncated; if that fails too, the journal accepts no more records.

use std::{
    fs::File,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::PathBuf,
    sync::Arc,
};

use rustix::fs::{AtFlags, StatxFlags, statx};

use crate::{
    JournalError, Key, RecordPosition,
    chain::Chain,
    checkpoint::{Checkpoint, Recovered, SetAside},
    entry::PreparedEntry,
    folder,
    membership::Membership,
    recover::Tail,
    stamp::{RecordTime, Stamp},
    tree::MerkleTree,
};

#[derive(Debug)]
pub(crate) struct Writer {
    folder: PathBuf,
    key: Arc<Key>,
    membership: Arc<Membership>,
    chain: Chain,
    tree: MerkleTree,
    /// Records since the last checkpoint.
    unsealed: u64,
    checkpoint_every: u64,
    day: Option<DayFile>,
    condition: WriterState,
}

/// The file that is being written.
#[derive(Debug)]
struct DayFile {
    name: String,
    day: i64,
    file: Arc<File>,
    length: u64,
}

#[derive(Debug)]
enum WriterState {
    Good,
    Closed,
    Broken(String),
}

/// A position in the journal, and the file that must be synced to make it durable.
#[derive(Clone, Debug)]
pub(crate) struct JournalMark {
    pub(crate) position: RecordPosition,
    pub(crate) stamp: Stamp,
    pub(crate) file: Option<Arc<File>>,
}

impl Writer {
    /// Continues where the last writer stopped. A torn line is truncated, so set it aside first.
    pub(crate) fn resume(
        folder: PathBuf,
        key: Arc<Key>,
        membership: Arc<Membership>,
        tail: Tail,
        checkpoint_every: u64,
    ) -> Result<Self, JournalError> {
        let mut writer = Self {
            folder,
            key,
            membership,
            chain: tail.chain,
            tree: tail.tree,
            unsealed: tail.unsealed,
            checkpoint_every: checkpoint_every.max(1),
            day: None,
            condition: WriterState::Good,
        };
        if let Some((name, length)) = tail.file {
            let day = folder::day_of(&name).map(Stamp::day).unwrap_or_default();
            let day = DayFile { file: Arc::new(writer.open(&name)?), name, day, length };
            if tail.torn.is_some() {
                let cut = day.file.set_len(length).and_then(|()| day.file.sync_all());
                cut.map_err(|error| {
                    JournalError::io("truncate the torn line in", &writer.path(&day.name), error)
                })?;
            }
            writer.day = Some(day);
        }
        Ok(writer)
    }

    /// Writes one record, and a checkpoint before it if one is due.
    pub(crate) fn append(
        &mut self,
        entry: PreparedEntry,
        now: Stamp,
    ) -> Result<RecordPosition, JournalError> {
        self.check()?;
        let time = RecordTime::after(self.chain.stamp, now);
        let is_new_day = self.day.as_ref().is_some_and(|day| day.day < time.stamp.day());
        if self.unsealed >= self.checkpoint_every || (is_new_day && self.unsealed > 0) {
            self.checkpoint(now)?;
        }
        let position = self.put(entry, time)?;
        self.unsealed += 1;
        Ok(position)
    }

    /// Whether enough records were written since the last checkpoint.
    pub(crate) fn is_checkpoint_due(&self) -> bool {
        self.unsealed >= self.checkpoint_every
    }

    /// Signs the records since the last checkpoint, if there are any.
    pub(crate) fn checkpoint(&mut self, now: Stamp) -> Result<(), JournalError> {
        self.check()?;
        if self.unsealed == 0 {
            return Ok(());
        }
        self.check_name()?;
        // The checkpoint belongs to the day that it signs, even after midnight.
        let time = RecordTime::after(self.chain.stamp, now);
        let is_same_day = self.day.as_ref().is_none_or(|day| day.day == time.stamp.day());
        let checkpoint = Checkpoint::sign(&self.tree, self.membership.listing(), &self.key);
        let entry = PreparedEntry::of_journal(&checkpoint)?;
        self.put(entry, if is_same_day { time } else { RecordTime::at(self.chain.stamp) })?;
        self.unsealed = 0;
        Ok(())
    }

    /// Records that the last writer did not close the journal.
    pub(crate) fn note_recovery(&mut self, set_aside: Vec<SetAside>, now: Stamp) -> Result<(), JournalError> {
        let note = Recovered::new(self.unsealed, set_aside);
        self.put(PreparedEntry::of_journal(&note)?, RecordTime::after(self.chain.stamp, now))?;
        self.unsealed += 1;
        self.checkpoint(now)
    }

    pub(crate) fn mark(&self) -> JournalMark {
        let file = self.day.as_ref().map(|day| Arc::clone(&day.file));
        JournalMark { position: self.chain.last, stamp: self.chain.stamp, file }
    }

    pub(crate) fn check(&self) -> Result<(), JournalError> {
        match &self.condition {
            WriterState::Good => Ok(()),
            WriterState::Closed => Err(JournalError::Closed),
            WriterState::Broken(why) => Err(JournalError::Broken(why.clone())),
        }
    }

    pub(crate) fn set_closed(&mut self) {
        self.condition = WriterState::Closed;
    }

    fn set_broken(&mut self, why: String) -> JournalError {
        self.condition = WriterState::Broken(why.clone());
        JournalError::Broken(why)
    }

    fn put(&mut self, entry: PreparedEntry, time: RecordTime) -> Result<RecordPosition, JournalError> {
        let (line, position) = entry.into_line(self.chain.last, time);
        self.open_day(time.stamp)?;
        self.write(&line)?;
        self.tree.push(&position.hash);
        self.chain.advance(position, time.stamp);
        Ok(position)
    }

    /// Opens the file of the day, after the previous file is on disk.
    fn open_day(&mut self, stamp: Stamp) -> Result<(), JournalError> {
        let day = stamp.day();
        if self.day.as_ref().is_some_and(|open| open.day == day) {
            return Ok(());
        }
        if let Some(old) = &self.day
            && let Err(error) = old.file.sync_data()
        {
            let name = old.name.clone();
            return Err(self.set_broken(format!("`{name}` could not be synced to the disk ({error})")));
        }
        let name = folder::file_of(stamp);
        let file = self.open(&name)?;
        let length =
            file.metadata().map_err(|error| self.failed("read the metadata of", &name, error))?.len();
        if length != 0 {
            return Err(self.set_broken(format!("another process has written to `{name}`")));
        }
        folder::sync_folder(&self.folder).map_err(|error| self.failed("create", &name, error))?;
        self.day = Some(DayFile { name, day, file: Arc::new(file), length });
        // Never return to a finished file, even if the clock goes back before the first record is written.
        self.chain.stamp = self.chain.stamp.max(stamp);
        Ok(())
    }

    fn write(&mut self, line: &[u8]) -> Result<(), JournalError> {
        let Some(day) = &mut self.day else { return Err(JournalError::Closed) };
        let path = || self.folder.join(&day.name);
        // Do not request the timestamps: a queried timestamp is updated by the next write, and each update costs disk I/O.
        let meta = statx(&day.file, c"", AtFlags::EMPTY_PATH, StatxFlags::NLINK | StatxFlags::SIZE)
            .map_err(|error| JournalError::io("read the metadata of", &path(), error.into()))?;
        if meta.stx_nlink == 0 || meta.stx_size != day.length {
            let why = format!("`{}` was changed or removed while it was being written", day.name);
            return Err(self.set_broken(why));
        }
        let Err(error) = day.file.write_all_at(line, day.length) else {
            day.length += line.len() as u64;
            return Ok(());
        };
        if let Err(second) = day.file.set_len(day.length) {
            let why =
                format!("`{}` contains a part of a record that could not be removed ({second})", day.name);
            return Err(self.set_broken(why));
        }
        Err(JournalError::io("write to", &path(), error))
    }

    /// Records written to a renamed or replaced file would not be part of the journal.
    fn check_name(&mut self) -> Result<(), JournalError> {
        let Some(day) = &self.day else { return Ok(()) };
        let is_same = match (day.file.metadata(), self.path(&day.name).symlink_metadata()) {
            (Ok(ours), Ok(named)) => (ours.dev(), ours.ino()) == (named.dev(), named.ino()),
            _ => false,
        };
        if is_same {
            return Ok(());
        }
        let why = format!("`{}` was moved or replaced while it was being written", day.name);
        Err(self.set_broken(why))
    }

    fn open(&self, name: &str) -> Result<File, JournalError> {
        folder::open_for_writing(&self.path(name)).map_err(|error| self.failed("open", name, error))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn failed(&self, doing: &str, name: &str, error: std::io::Error) -> JournalError {
        JournalError::io(doing, &self.path(name), error)
    }
}
