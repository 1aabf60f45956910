//! Who may append, and when is a record safe?

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
    JournalError, Key, Position,
    entry::Entry,
    folder,
    head::{End, Head},
    membership::Membership,
    recover,
    stamp::{RecordTime, Stamp},
    writer::{Mark, Writer},
};

/// A journal that is open for writing. Clones write to the same journal.
#[derive(Clone, Debug)]
pub struct Journal {
    shared: Arc<Shared>,
}

/// Where the time comes from.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + std::marker::Sync>;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Records between two checkpoints; 1,000 unless there is a reason.
    pub checkpoint_every: u64,
    pub sync: Sync,
}

/// What has happened to a record when `append` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The kernel has it: it survives the end of this process however sudden, but not a power cut.
    Write,
    /// The disk has it. Appenders that wait at the same time share one `fdatasync`.
    Disk,
}

impl Default for Options {
    fn default() -> Self {
        Self { checkpoint_every: 1000, sync: Sync::Write }
    }
}

impl Journal {
    /// Opens the journal of a folder, or begins one. Refuses a journal whose end is not as it was written.
    pub fn open(folder: &Path, key: Key, options: Options, clock: Clock) -> Result<Self, JournalError> {
        folder::prepare(folder)?;
        let lock = folder::lock(folder)?;
        let tail = recover::read_tail(folder, key.public())?;
        let now = now(&clock)?;
        let membership = Arc::new(Membership::join(folder, &key, &tail, now)?);
        let key = Arc::new(key);
        let heads = Arc::new(Heads {
            folder: folder.into(),
            key: Arc::clone(&key),
            membership: Arc::clone(&membership),
            last: Mutex::new(Some(0)),
            fault: OnceLock::new(),
        });
        let (end, is_torn) = (tail.end, tail.torn.is_some());
        // INVARIANT: from here on the head says "open"; nobody may append to a journal whose head says "closed".
        heads.secure(&tail.mark(folder)?, End::Open)?;
        let set_aside = recover::set_aside(folder, &tail)?;
        let is_used = tail.chain.last != Position::START;
        let mut writer = Writer::resume(folder.into(), key, membership, tail, options.checkpoint_every)?;
        if is_torn || (end == End::Open && is_used) || !set_aside.is_empty() {
            writer.note_recovery(set_aside, now)?;
            heads.secure(&writer.mark(), End::Open)?;
        }
        let (sender, receiver) = channel();
        let keeper = std::thread::Builder::new()
            .name("journal-head".to_owned())
            .spawn({
                let heads = Arc::clone(&heads);
                move || heads.keep(&receiver)
            })
            .map_err(|error| JournalError::io("start a thread for", folder, error))?;
        let shared = Shared {
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

    /// Adds an entry, a JSON object, and returns when it is as safe as [`Sync`] says. An error means that it is
    /// not in the journal, or that the journal accepts nothing more.
    pub fn append<E: Serialize>(&self, entry: &E) -> Result<Position, JournalError> {
        let entry = Entry::of_user(entry)?;
        let mut writer = self.shared.writer()?;
        // The clock is asked under the lock, so that times are in the order of the records.
        let now = now(&self.shared.clock)?;
        let position = writer.append(entry, now)?;
        if writer.is_checkpoint_due() && writer.checkpoint(now).is_ok() {
            // A checkpoint that failed stays due: the next append tries again and reports.
            self.shared.announce(writer.mark());
        }
        drop(writer);
        match self.shared.sync {
            Sync::Write => {}
            Sync::Disk => self.shared.wait_for_disk(position.seq)?,
        }
        Ok(position)
    }

    /// Signs what was written since the last checkpoint. To be called every few minutes.
    pub fn checkpoint(&self) -> Result<(), JournalError> {
        self.shared.heads.membership.refresh();
        let mut writer = self.shared.writer()?;
        writer.checkpoint(now(&self.shared.clock)?)?;
        let mark = writer.mark();
        drop(writer);
        self.shared.heads.secure(&mark, End::Open)
    }

    /// How far the system clock is behind the newest record; zero if it is not.
    pub fn clock_behind(&self) -> Duration {
        let (Ok(now), Ok(writer)) = (now(&self.shared.clock), self.shared.writer.lock()) else {
            return Duration::ZERO;
        };
        RecordTime::after(writer.mark().stamp, now).behind()
    }

    /// Seals the journal and lets go of it; appending fails from now on. When it fails the journal stays open, and
    /// closing may be tried again. Closing what is closed does nothing.
    pub fn close(&self) -> Result<(), JournalError> {
        let mut writer = match self.shared.writer() {
            Err(JournalError::Closed) => return Ok(()),
            other => other?,
        };
        self.shared.heads.membership.refresh();
        writer.checkpoint(now(&self.shared.clock)?)?;
        let mark = writer.mark();
        self.shared.stop_keeper();
        self.shared.heads.secure(&mark, End::Closed)?;
        writer.set_closed();
        drop(writer);
        self.shared.unlock();
        Ok(())
    }
}

struct Shared {
    sync: Sync,
    clock: Clock,
    writer: Mutex<Writer>,
    flush: Flush,
    heads: Arc<Heads>,
    keeper: Mutex<Option<(Sender<Mark>, JoinHandle<()>)>>,
    /// Last, so that the journal is free for others only after everything else is over.
    lock: Mutex<Option<File>>,
}

/// How much of the journal has reached the disk, and whether somebody is bringing more there.
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

/// Writes `head.json`, never an older one over a newer one.
struct Heads {
    folder: PathBuf,
    key: Arc<Key>,
    membership: Arc<Membership>,
    /// The number of the last one; none once the journal was closed and may belong to somebody else.
    last: Mutex<Option<u64>>,
    /// Set once the disk has refused something: the kernel tells so only once, and forgets what it lost.
    fault: OnceLock<String>,
}

impl Shared {
    fn writer(&self) -> Result<MutexGuard<'_, Writer>, JournalError> {
        let writer = self.writer.lock().map_err(|_| poisoned())?;
        self.heads.check()?;
        writer.check()?;
        Ok(writer)
    }

    /// Returns when everything up to `seq` is on disk. The first to come works for all who wait.
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

    /// Where the journal ends now. Also for one who comes after `close`, which has brought his record to the disk.
    fn mark(&self) -> Result<Mark, JournalError> {
        match self.writer() {
            Ok(writer) => Ok(writer.mark()),
            Err(JournalError::Closed) => Ok(self.writer.lock().map_err(|_| poisoned())?.mark()),
            Err(error) => Err(error),
        }
    }

    /// Has the head written by and by, off the path of those who append.
    fn announce(&self, mark: Mark) {
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

impl Drop for Shared {
    fn drop(&mut self) {
        self.stop_keeper();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("folder", &self.heads.folder)
            .field("sync", &self.sync)
            .finish_non_exhaustive()
    }
}

impl Heads {
    /// The records go to the disk first: a head must not promise what a power cut takes away.
    fn secure(&self, mark: &Mark, end: End) -> Result<(), JournalError> {
        self.sync(mark)?;
        self.put(mark, end)
    }

    fn put(&self, mark: &Mark, end: End) -> Result<(), JournalError> {
        let mut last = self.last.lock().map_err(|_| poisoned())?;
        if last.is_none_or(|last| mark.position.seq < last) {
            return Ok(());
        }
        self.membership.refresh();
        let listing = Some(self.membership.listing());
        Head::sign(mark.position, mark.stamp, end, listing, &self.key).save(&self.folder)?;
        *last = (end == End::Open).then_some(mark.position.seq);
        Ok(())
    }

    /// Brings the file of a mark to the disk; the files before it are there already.
    fn sync(&self, mark: &Mark) -> Result<(), JournalError> {
        if let Some(Err(error)) = mark.file.as_ref().map(|file| file.sync_data()) {
            self.fault.get_or_init(|| format!("the disk did not take what was written ({error})"));
        }
        // Another thread may have been told of the fault that concerns this mark too.
        self.check()
    }

    fn check(&self) -> Result<(), JournalError> {
        self.fault.get().map_or(Ok(()), |why| Err(JournalError::Broken(why.clone())))
    }

    /// Writes the newest head of those announced, a few times a second at most. What fails is tried again with the
    /// next checkpoint.
    fn keep(&self, announced: &Receiver<Mark>) {
        while let Ok(mut mark) = announced.recv() {
            let until = Instant::now() + PAUSE;
            let ended = loop {
                match announced.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(newer) => mark = newer,
                    Err(RecvTimeoutError::Timeout) => break false,
                    Err(RecvTimeoutError::Disconnected) => break true,
                }
            };
            let _retried = self.secure(&mark, End::Open);
            if ended {
                return;
            }
        }
    }
}

fn now(clock: &Clock) -> Result<Stamp, JournalError> {
    Stamp::of(clock()).ok_or_else(|| {
        JournalError::Entry("the clock is beyond the year 9999; set it right and try again".to_owned())
    })
}

fn poisoned() -> JournalError {
    JournalError::Broken("a thread died while it was writing".to_owned())
}

/// Between two heads that nobody asked for.
const PAUSE: Duration = Duration::from_millis(200);
