//! How does a record get to the end of the journal, whole or not at all?
//!
//! Everything here happens under the journal's lock. The state moves on only after the write has succeeded; a
//! write that failed is cut off again, and where even that fails nothing more is accepted.

use std::{
    fs::File,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::PathBuf,
    sync::Arc,
};

use rustix::fs::{AtFlags, StatxFlags, statx};

use crate::{
    JournalError, Key, Position,
    chain::Chain,
    checkpoint::{Checkpoint, Recovered, SetAside},
    entry::Entry,
    folder,
    membership::Membership,
    recover::Tail,
    stamp::{RecordTime, Stamp},
    tree::Tree,
};

#[derive(Debug)]
pub(crate) struct Writer {
    folder: PathBuf,
    key: Arc<Key>,
    membership: Arc<Membership>,
    chain: Chain,
    tree: Tree,
    /// Records since the last checkpoint.
    unsealed: u64,
    checkpoint_every: u64,
    day: Option<DayFile>,
    condition: Condition,
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
enum Condition {
    Good,
    Closed,
    Broken(String),
}

/// A place in the journal, and the file that must reach the disk for it to be there for good.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) position: Position,
    pub(crate) stamp: Stamp,
    pub(crate) file: Option<Arc<File>>,
}

impl Writer {
    /// Goes on where the last writer stopped; a torn line is cut off, so set it aside before.
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
            condition: Condition::Good,
        };
        if let Some((name, length)) = tail.file {
            let day = folder::day_of(&name).map(Stamp::day).unwrap_or_default();
            let day = DayFile { file: Arc::new(writer.open(&name)?), name, day, length };
            if tail.torn.is_some() {
                let cut = day.file.set_len(length).and_then(|()| day.file.sync_all());
                cut.map_err(|error| {
                    JournalError::io("cut the torn line from", &writer.path(&day.name), error)
                })?;
            }
            writer.day = Some(day);
        }
        Ok(writer)
    }

    /// Writes one record, and the checkpoints that are due around it.
    pub(crate) fn append(&mut self, entry: Entry, now: Stamp) -> Result<Position, JournalError> {
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

    /// Whether enough records came since the last checkpoint.
    pub(crate) fn is_checkpoint_due(&self) -> bool {
        self.unsealed >= self.checkpoint_every
    }

    /// Seals what was written since the last checkpoint, if anything was.
    pub(crate) fn checkpoint(&mut self, now: Stamp) -> Result<(), JournalError> {
        self.check()?;
        if self.unsealed == 0 {
            return Ok(());
        }
        self.check_name()?;
        // It belongs to the day that it seals, also when the clock has passed midnight.
        let time = RecordTime::after(self.chain.stamp, now);
        let is_same_day = self.day.as_ref().is_none_or(|day| day.day == time.stamp.day());
        let checkpoint = Checkpoint::sign(&self.tree, self.membership.listing(), &self.key);
        let entry = Entry::of_journal(&checkpoint)?;
        self.put(entry, if is_same_day { time } else { RecordTime::at(self.chain.stamp) })?;
        self.unsealed = 0;
        Ok(())
    }

    /// Notes that the last writer did not close the journal.
    pub(crate) fn note_recovery(&mut self, set_aside: Vec<SetAside>, now: Stamp) -> Result<(), JournalError> {
        let note = Recovered::new(self.unsealed, set_aside);
        self.put(Entry::of_journal(&note)?, RecordTime::after(self.chain.stamp, now))?;
        self.unsealed += 1;
        self.checkpoint(now)
    }

    pub(crate) fn mark(&self) -> Mark {
        let file = self.day.as_ref().map(|day| Arc::clone(&day.file));
        Mark { position: self.chain.last, stamp: self.chain.stamp, file }
    }

    pub(crate) fn check(&self) -> Result<(), JournalError> {
        match &self.condition {
            Condition::Good => Ok(()),
            Condition::Closed => Err(JournalError::Closed),
            Condition::Broken(why) => Err(JournalError::Broken(why.clone())),
        }
    }

    pub(crate) fn set_closed(&mut self) {
        self.condition = Condition::Closed;
    }

    fn set_broken(&mut self, why: String) -> JournalError {
        self.condition = Condition::Broken(why.clone());
        JournalError::Broken(why)
    }

    fn put(&mut self, entry: Entry, time: RecordTime) -> Result<Position, JournalError> {
        let (line, position) = entry.into_line(self.chain.last, time);
        self.turn_to(time.stamp)?;
        self.write(&line)?;
        self.tree.push(&position.hash);
        self.chain.advance(position, time.stamp);
        Ok(position)
    }

    /// Opens the file of the day, once the one before it is on disk.
    fn turn_to(&mut self, stamp: Stamp) -> Result<(), JournalError> {
        let day = stamp.day();
        if self.day.as_ref().is_some_and(|open| open.day == day) {
            return Ok(());
        }
        if let Some(old) = &self.day
            && let Err(error) = old.file.sync_data()
        {
            let name = old.name.clone();
            return Err(self.set_broken(format!("`{name}` could not be brought to the disk ({error})")));
        }
        let name = folder::file_of(stamp);
        let file = self.open(&name)?;
        let length = file.metadata().map_err(|error| self.failed("look at", &name, error))?.len();
        if length != 0 {
            return Err(self.set_broken(format!("somebody else has written to `{name}`")));
        }
        folder::sync_folder(&self.folder).map_err(|error| self.failed("make", &name, error))?;
        self.day = Some(DayFile { name, day, file: Arc::new(file), length });
        // No way back to a file that is done, also if the clock goes back before the first record is written.
        self.chain.stamp = self.chain.stamp.max(stamp);
        Ok(())
    }

    fn write(&mut self, line: &[u8]) -> Result<(), JournalError> {
        let Some(day) = &mut self.day else { return Err(JournalError::Closed) };
        let path = || self.folder.join(&day.name);
        // Its times are not asked for: a file whose times were looked at gets new ones with the next write, each on its own way to
        // the disk.
        let meta = statx(&day.file, c"", AtFlags::EMPTY_PATH, StatxFlags::NLINK | StatxFlags::SIZE)
            .map_err(|error| JournalError::io("look at", &path(), error.into()))?;
        if meta.stx_nlink == 0 || meta.stx_size != day.length {
            let why = format!("`{}` was changed or removed while it was being written", day.name);
            return Err(self.set_broken(why));
        }
        let Err(error) = day.file.write_all_at(line, day.length) else {
            day.length += line.len() as u64;
            return Ok(());
        };
        if let Err(second) = day.file.set_len(day.length) {
            let why = format!("`{}` holds part of a record that could not be removed ({second})", day.name);
            return Err(self.set_broken(why));
        }
        Err(JournalError::io("write to", &path(), error))
    }

    /// A file that was renamed, or replaced by another one, would take our records out of the journal.
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
