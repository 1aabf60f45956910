//! The open journal: appending, checkpoints and durability.

use std::{
    fmt,
    fs::File,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime},
};

use serde::Serialize;

use crate::{
    JournalError, Key, RecordPosition,
    entry::PreparedEntry,
    folder,
    head::{Head, JournalHeadState},
    membership::Membership,
    recover,
    stamp::{RecordTime, Stamp},
    writer::{JournalMark, Writer},
};

/// A journal that is open for writing. Clones write to the same journal.
#[derive(Clone, Debug)]
pub struct Journal {
    shared: Arc<JournalShared>,
}

/// The source of the current time.
pub type ClockFn = Arc<dyn Fn() -> SystemTime + Send + Sync>;

#[derive(Clone, Copy, Debug)]
pub struct JournalOptions {
    /// Records between two checkpoints; 1,000 by default.
    pub checkpoint_every: u64,
    pub sync: Durability,
}

/// How durable a record is when `append` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Written to the kernel: survives a crash of this process, but not a power cut.
    Write,
    /// Written to the disk. Appenders that wait at the same time share one `fdatasync`.
    Disk,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self { checkpoint_every: 1000, sync: Durability::Write }
    }
}

impl Journal {
    /// Opens the journal in a directory, or creates one. Rejects a journal whose end was changed.
    pub fn open(
        folder: &Path,
        key: Key,
        options: JournalOptions,
        clock: ClockFn,
    ) -> Result<Self, JournalError> {
        folder::prepare(folder)?;
        let lock = folder::lock(folder)?;
        let tail = recover::read_tail(folder, key.public())?;
        let now = now(&clock)?;
        let membership = Arc::new(Membership::join(folder, &key, &tail, now)?);
        let key = Arc::new(key);
        let heads = Arc::new(HeadKeeper {
            folder: folder.into(),
            key: Arc::clone(&key),
            membership: Arc::clone(&membership),
            last: Mutex::new(Some(0)),
            fault: OnceLock::new(),
        });
        let (end, is_torn) = (tail.end, tail.torn.is_some());
        // INVARIANT: from here on the head says "open". Nothing may be appended to a journal whose head says "closed".
        heads.secure(&tail.mark(folder)?, JournalHeadState::Open)?;
        let set_aside = recover::set_aside(folder, &tail)?;
        let is_used = tail.chain.last != RecordPosition::START;
        let mut writer = Writer::resume(folder.into(), key, membership, tail, options.checkpoint_every)?;
        if is_torn || (end == JournalHeadState::Open && is_used) || !set_aside.is_empty() {
            writer.note_recovery(set_aside, now)?;
            heads.secure(&writer.mark(), JournalHeadState::Open)?;
        }
        let (sender, receiver) = channel();
        let keeper = std::thread::Builder::new()
            .name("journal-head".to_owned())
            .spawn({
                let heads = Arc::clone(&heads);
                move || heads.keep(&receiver)
            })
            .map_err(|error| JournalError::io("start a thread for", folder, error))?;
        let shared = JournalShared {
            sync: options.sync,
            clock,
            writer: Mutex::new(writer),
            flush: Flush::default(),
            heads,
            keeper: Mutex::new(Some((sender, keeper))),
            lock: Mutex::new(Some(lock)),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Appends an entry, which must be a JSON object. Returns when the entry is as durable as [`Durability`] says. An
    /// error means that it is not in the journal, or that the journal accepts no more records.
    pub fn append<E: Serialize>(&self, entry: &E) -> Result<RecordPosition, JournalError> {
        let entry = PreparedEntry::of_user(entry)?;
        let mut writer = self.shared.writer()?;
        // The clock is read under the lock, so times have the order of the records.
        let now = now(&self.shared.clock)?;
        let position = writer.append(entry, now)?;
        if writer.is_checkpoint_due() && writer.checkpoint(now).is_ok() {
            // A failed checkpoint stays due: the next append tries again and reports the error.
            self.shared.announce(writer.mark());
        }
        drop(writer);
        match self.shared.sync {
            Durability::Write => {}
            Durability::Disk => self.shared.wait_for_disk(position.seq)?,
        }
        Ok(position)
    }

    /// Signs the records since the last checkpoint. Call this every few minutes.
    pub fn checkpoint(&self) -> Result<(), JournalError> {
        self.shared.heads.membership.refresh();
        let mut writer = self.shared.writer()?;
        writer.checkpoint(now(&self.shared.clock)?)?;
        let mark = writer.mark();
        drop(writer);
        self.shared.heads.secure(&mark, JournalHeadState::Open)
    }

    /// How far the system clock is behind the newest record, or zero.
    pub fn clock_behind(&self) -> Duration {
        let (Ok(now), Ok(writer)) = (now(&self.shared.clock), self.shared.writer.lock()) else {
            return Duration::ZERO;
        };
        RecordTime::after(writer.mark().stamp, now).behind()
    }

    /// Signs and closes the journal; later appends fail. If closing fails, the journal stays open and closing can be
    /// repeated. Closing a closed journal does nothing.
    pub fn close(&self) -> Result<(), JournalError> {
        let mut writer = match self.shared.writer() {
            Err(JournalError::Closed) => return Ok(()),
            other => other?,
        };
        self.shared.heads.membership.refresh();
        writer.checkpoint(now(&self.shared.clock)?)?;
        let mark = writer.mark();
        self.shared.stop_keeper();
        self.shared.heads.secure(&mark, JournalHeadState::Closed)?;
        writer.set_closed();
        drop(writer);
        self.shared.unlock();
        Ok(())
    }
}

struct JournalShared {
    sync: Durability,
    clock: ClockFn,
    writer: Mutex<Writer>,
    flush: Flush,
    heads: Arc<HeadKeeper>,
    keeper: Mutex<Option<(Sender<JournalMark>, JoinHandle<()>)>>,
    /// The last field: other processes may open the journal only after everything else is dropped.
    lock: Mutex<Option<File>>,
}

/// How much of the journal is on disk, and whether a thread is syncing more.
#[derive(Default)]
struct Flush {
    state: Mutex<FlushState>,
    changed: Condvar,
}

#[derive(Default)]
struct FlushState {
    safe: u64,
    is_running: bool,
}

/// Writes `head.json`, and never replaces a newer head by an older one.
struct HeadKeeper {
    folder: PathBuf,
    key: Arc<Key>,
    membership: Arc<Membership>,
    /// The number of the last head. `None` after the journal was closed, because another process may own it then.
    last: Mutex<Option<u64>>,
    /// Set after a failed sync: the kernel reports such an error only once, and the lost data is unknown.
    fault: OnceLock<String>,
}

impl JournalShared {
    fn writer(&self) -> Result<MutexGuard<'_, Writer>, JournalError> {
        let writer = self.writer.lock().map_err(|_| poisoned())?;
        self.heads.check()?;
        writer.check()?;
        Ok(writer)
    }

    /// Returns when all records up to `seq` are on disk. The first waiting thread syncs for all.
    fn wait_for_disk(&self, seq: u64) -> Result<(), JournalError> {
        let mut state = self.flush.state.lock().map_err(|_| poisoned())?;
        loop {
            if state.safe >= seq {
                return Ok(());
            }
            if state.is_running {
                state = self.flush.changed.wait(state).map_err(|_| poisoned())?;
                continue;
            }
            state.is_running = true;
            drop(state);
            let outcome = self.mark().and_then(|mark| self.heads.sync(&mark).map(|()| mark.position.seq));
            state = self.flush.state.lock().map_err(|_| poisoned())?;
            state.is_running = false;
            self.flush.changed.notify_all();
            state.safe = state.safe.max(outcome?);
        }
    }

    /// The current end of the journal. Also works after `close`, which has synced all records.
    fn mark(&self) -> Result<JournalMark, JournalError> {
        match self.writer() {
            Ok(writer) => Ok(writer.mark()),
            Err(JournalError::Closed) => Ok(self.writer.lock().map_err(|_| poisoned())?.mark()),
            Err(error) => Err(error),
        }
    }

    /// Lets the keeper thread write the head, which does not delay appenders.
    fn announce(&self, mark: JournalMark) {
        if let Ok(keeper) = self.keeper.lock()
            && let Some((sender, _)) = keeper.as_ref()
        {
            // The keeper lives as long as its sender.
            let _gone = sender.send(mark);
        }
    }

    fn stop_keeper(&self) {
        let keeper = self.keeper.lock().ok().and_then(|mut keeper| keeper.take());
        if let Some((sender, thread)) = keeper {
            drop(sender);
            let _panicked = thread.join();
        }
    }

    fn unlock(&self) {
        if let Ok(mut lock) = self.lock.lock() {
            lock.take();
        }
    }
}

impl Drop for JournalShared {
    fn drop(&mut self) {
        self.stop_keeper();
    }
}

impl fmt::Debug for JournalShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalShared")
            .field("folder", &self.heads.folder)
            .field("sync", &self.sync)
            .finish_non_exhaustive()
    }
}

impl HeadKeeper {
    /// Syncs the records first: a head must not cover records that a power cut could remove.
    fn secure(&self, mark: &JournalMark, end: JournalHeadState) -> Result<(), JournalError> {
        self.sync(mark)?;
        self.put(mark, end)
    }

    fn put(&self, mark: &JournalMark, end: JournalHeadState) -> Result<(), JournalError> {
        let mut last = self.last.lock().map_err(|_| poisoned())?;
        if last.is_none_or(|last| mark.position.seq < last) {
            return Ok(());
        }
        self.membership.refresh();
        let listing = Some(self.membership.listing());
        Head::sign(mark.position, mark.stamp, end, listing, &self.key).save(&self.folder)?;
        *last = (end == JournalHeadState::Open).then_some(mark.position.seq);
        Ok(())
    }

    /// Syncs the file of a mark. Earlier files are already synced.
    fn sync(&self, mark: &JournalMark) -> Result<(), JournalError> {
        if let Some(Err(error)) = mark.file.as_ref().map(|file| file.sync_data()) {
            self.fault.get_or_init(|| format!("the disk did not store the records ({error})"));
        }
        // Another thread may have received the error that concerns this mark.
        self.check()
    }

    fn check(&self) -> Result<(), JournalError> {
        self.fault.get().map_or(Ok(()), |why| Err(JournalError::Broken(why.clone())))
    }

    /// Writes the newest announced head, at most a few times per second. A failed write is repeated with the next
    /// checkpoint.
    fn keep(&self, announced: &Receiver<JournalMark>) {
        while let Ok(mut mark) = announced.recv() {
            let until = Instant::now() + PAUSE;
            let ended = loop {
                match announced.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(newer) => mark = newer,
                    Err(RecvTimeoutError::Timeout) => break false,
                    Err(RecvTimeoutError::Disconnected) => break true,
                }
            };
            let _retried = self.secure(&mark, JournalHeadState::Open);
            if ended {
                return;
            }
        }
    }
}

fn now(clock: &ClockFn) -> Result<Stamp, JournalError> {
    Stamp::of(clock()).ok_or_else(|| {
        JournalError::Entry("the clock is beyond the year 9999; set the clock and try again".to_owned())
    })
}

fn poisoned() -> JournalError {
    JournalError::Broken("a thread panicked while it was writing".to_owned())
}

/// The pause between two heads written by the keeper.
const PAUSE: Duration = Duration::from_millis(200);
