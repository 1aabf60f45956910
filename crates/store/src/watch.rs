//! Watches files and directories for changes. Each burst of changes increments a counter at least once.
//!
//! The kernel reports changes with their paths (inotify). Once a second the watcher also checks that the watched names
//! still lead to the same files, which covers renamed ancestors and changed symlinks. The check looks at the watched
//! paths and at known symlinks only, so an idle gateway uses no measurable CPU however many files there are. If the
//! limits of inotify are exhausted, the watcher compares all metadata once a second. Start the watch first and read
//! the files after it: then no change is missed.

use std::{
    error::Error,
    fmt, fs, io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use notify::{
    Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode, ModifyKind},
};
use tokio::sync::watch;

pub use self::changed::FileChanges;
use self::{
    changed::ChangeLog,
    plan::{Depth, WatchPlan},
};

mod changed;
mod plan;
mod scan;
#[cfg(test)]
mod tests;

/// Watches until it is dropped.
#[derive(Debug)]
pub struct FileWatch {
    signals: Arc<Signals>,
    thread: Option<JoinHandle<()>>,
}

impl FileWatch {
    /// Watches files and whole directories, including paths that do not exist yet. Skips the same names as `walk`. `ticks`
    /// increases by one after each burst of changes: 50 ms after the last change, and at most 500 ms after the first.
    pub fn start(paths: Vec<PathBuf>, ticks: watch::Sender<u64>) -> Result<Self, WatchError> {
        Self::start_with(paths, ticks, WatchMode { inotify: InotifyUse::Enabled, poll_every: LOOK_EVERY })
    }

    fn start_with(
        paths: Vec<PathBuf>,
        ticks: watch::Sender<u64>,
        mode: WatchMode,
    ) -> Result<Self, WatchError> {
        let paths: Vec<PathBuf> =
            paths.into_iter().map(std::path::absolute).collect::<io::Result<_>>().map_err(WatchError)?;
        let (wake, woken) = mpsc::sync_channel(1);
        let signals = Arc::new(Signals {
            wake,
            is_stopped: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            may_have_links: AtomicBool::new(false),
            log: ChangeLog::default(),
        });
        let mut watcher = FileWatcher { paths, ticks, mode, signals: Arc::clone(&signals), woken };
        // Register before the thread starts: the caller may read files as soon as this returns.
        let source = watcher.begin();
        let thread = std::thread::Builder::new()
            .name("toolgate-watch".to_owned())
            .spawn(move || watcher.run(source))
            .map_err(WatchError)?;
        Ok(Self { signals, thread: Some(thread) })
    }

    /// The changes since the last call. Take them before you read the files: later changes are in the next batch.
    pub fn take_changes(&self) -> FileChanges {
        self.signals.log.take()
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        self.signals.is_stopped.store(true, Ordering::Release);
        self.signals.wake();
        if let Some(thread) = self.thread.take() {
            // Ignore a panic of the thread: there is nothing to clean up.
            let _ = thread.join();
        }
    }
}

/// A watch that could not be started.
#[derive(Debug)]
pub struct WatchError(io::Error);

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot watch files for changes: {}", self.0)
    }
}

impl Error for WatchError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[derive(Clone, Copy, Debug)]
struct WatchMode {
    inotify: InotifyUse,
    poll_every: Duration,
}

/// Whether inotify is used, or only polling.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum InotifyUse {
    Enabled,
    #[cfg(test)]
    Disabled,
}

#[derive(Debug)]
struct Signals {
    /// Capacity one: many changes cause one wake-up.
    wake: SyncSender<()>,
    is_stopped: AtomicBool,
    /// The kernel dropped events, or could not watch a new directory.
    is_lost: AtomicBool,
    /// A directory or a symlink was created or changed.
    may_have_links: AtomicBool,
    log: ChangeLog,
}

impl Signals {
    fn wake(&self) {
        // If the channel is full, a wake-up is already pending.
        let _ = self.wake.try_send(());
    }

    fn change(&self, paths: Vec<PathBuf>) {
        // Removed symlinks are found by `WatchPlan::again`.
        let is_more = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| !found.is_file());
        if paths.iter().any(is_more) {
            self.may_have_links.store(true, Ordering::Release);
        }
        self.log.add(paths);
        self.wake();
    }

    fn lose(&self) {
        self.log.add_everything();
        self.is_lost.store(true, Ordering::Release);
        self.wake();
    }
}

/// How changes are detected.
enum ChangeSource {
    Inotify {
        plan: WatchPlan,
        notify: RecommendedWatcher,
    },
    /// A fingerprint of the files, and the number of polls until inotify is tried again.
    Polling {
        fingerprint: u64,
        polls_left: u32,
    },
}

struct FileWatcher {
    paths: Vec<PathBuf>,
    ticks: watch::Sender<u64>,
    mode: WatchMode,
    signals: Arc<Signals>,
    woken: Receiver<()>,
}

impl FileWatcher {
    fn run(mut self, mut source: ChangeSource) {
        loop {
            let is_woken = match self.woken.recv_timeout(self.mode.poll_every) {
                Ok(()) => true,
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if is_woken {
                self.wait_for_quiet();
            }
            if self.signals.is_stopped.load(Ordering::Acquire) {
                return;
            }
            let has_moved;
            (source, has_moved) = self.renewed(source);
            // Tick after the renewal: a reader then sees every change from before the new watches.
            if has_moved {
                self.signals.log.add_everything();
            }
            if is_woken || has_moved {
                self.ticks.send_modify(|tick| *tick = tick.wrapping_add(1));
            }
        }
    }

    fn wait_for_quiet(&self) {
        let latest = Instant::now() + AT_MOST;
        while !self.signals.is_stopped.load(Ordering::Acquire) {
            let left = latest.saturating_duration_since(Instant::now()).min(QUIET);
            if left.is_zero() || self.woken.recv_timeout(left).is_err() {
                return;
            }
        }
    }

    /// The source for the current state of the disk, and whether changes may have been missed.
    fn renewed(&mut self, source: ChangeSource) -> (ChangeSource, bool) {
        match source {
            ChangeSource::Inotify { plan, notify } => {
                let is_lost = self.signals.is_lost.swap(false, Ordering::AcqRel);
                if !is_lost && plan == self.plan_now(&plan) {
                    return (ChangeSource::Inotify { plan, notify }, false);
                }
                // Drop the old one first: it may use up the inotify limits.
                drop(notify);
                (self.begin(), true)
            }
            ChangeSource::Polling { fingerprint, polls_left: 0 } => {
                let source = self.begin();
                let has_moved =
                    !matches!(source, ChangeSource::Polling { fingerprint: now, .. } if now == fingerprint);
                (source, has_moved)
            }
            ChangeSource::Polling { fingerprint, polls_left } => {
                let now = scan::fingerprint(&self.paths);
                (ChangeSource::Polling { fingerprint: now, polls_left: polls_left - 1 }, now != fingerprint)
            }
        }
    }

    /// Searches for new symlinks only if a directory or symlink changed.
    fn plan_now(&self, known: &WatchPlan) -> WatchPlan {
        let may_have_links = self.signals.may_have_links.swap(false, Ordering::AcqRel);
        if may_have_links { WatchPlan::of(&self.paths) } else { known.again(&self.paths) }
    }

    fn begin(&mut self) -> ChangeSource {
        self.registered().unwrap_or_else(|| ChangeSource::Polling {
            fingerprint: scan::fingerprint(&self.paths),
            polls_left: POLLS_BEFORE_RETRY,
        })
    }

    /// Registers inotify watches for the current state of the disk. `None`: not possible now.
    fn registered(&self) -> Option<ChangeSource> {
        if self.mode.inotify != InotifyUse::Enabled {
            return None;
        }
        let mut plan = WatchPlan::of(&self.paths);
        for _ in 0..ATTEMPTS {
            let watched = self.register(&plan);
            // Register again if paths changed meanwhile: they would stay unwatched.
            let now = WatchPlan::of(&self.paths);
            if let Ok(notify) = watched
                && plan == now
            {
                return Some(ChangeSource::Inotify { plan, notify });
            }
            plan = now;
        }
        None
    }

    fn register(&self, plan: &WatchPlan) -> notify::Result<RecommendedWatcher> {
        let (signals, meant) = (Arc::clone(&self.signals), plan.clone());
        let handler = move |event: notify::Result<Event>| match event {
            Ok(event) if event.need_rescan() || ends_a_watch(&event, &meant) => signals.lose(),
            Ok(event) if is_change(&event) && event.paths.iter().any(|path| meant.concerns(path)) => {
                signals.change(event.paths);
            }
            Ok(_) => {}
            Err(_) => signals.lose(),
        };
        // `walk` does not follow symlinks to directories either.
        let mut notify = RecommendedWatcher::new(handler, Config::default().with_follow_symlinks(false))?;
        for (path, depth) in plan.watched() {
            let mode = match depth {
                Depth::Names => RecursiveMode::NonRecursive,
                Depth::Everything => RecursiveMode::Recursive,
            };
            notify.watch(path, mode)?;
        }
        Ok(notify)
    }
}

/// Ignores opening and reading: a reader who reacts to a tick must not cause the next one.
fn is_change(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

/// True if a registered directory was removed. Its watch went with it. The replacement may have the same inode, so only
/// the event reveals the removal.
fn ends_a_watch(event: &Event, plan: &WatchPlan) -> bool {
    let is_leaving = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    is_leaving && event.paths.iter().any(|path| plan.registers(path))
}

const QUIET: Duration = Duration::from_millis(50);
const AT_MOST: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Polls until inotify is tried again: its limits may have been raised.
const POLLS_BEFORE_RETRY: u32 = 60;

/// How often registration is retried if files change meanwhile.
const ATTEMPTS: u32 = 5;
