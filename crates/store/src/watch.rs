//! Has something changed on the disk? A tick says so, soon after and at least once; what changed is for the reader to see.
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

pub use self::changed::Changes;
use self::{
    changed::ChangeLog,
    plan::{Depth, Plan},
};

mod changed;
mod plan;
mod scan;
#[cfg(test)]
mod tests;

/// Watches until it is dropped.
#[derive(Debug)]
pub struct Watch {
    signals: Arc<Signals>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches files and whole folders, also such as do not exist yet. Below a folder it passes over what `walk` passes
    /// over. `ticks` goes up by one after each burst of changes: when it has been quiet for 50 ms, and at the latest
    /// 500 ms after its first.
    pub fn start(paths: Vec<PathBuf>, ticks: watch::Sender<u64>) -> Result<Self, WatchError> {
        Self::start_with(paths, ticks, How { kernel: Kernel::Asked, look_every: LOOK_EVERY })
    }

    fn start_with(paths: Vec<PathBuf>, ticks: watch::Sender<u64>, how: How) -> Result<Self, WatchError> {
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
        let mut watcher = Watcher { paths, ticks, how, signals: Arc::clone(&signals), woken };
        // Before the thread starts, so that the caller may read files as soon as this returns.
        let source = watcher.begin();
        let thread = std::thread::Builder::new()
            .name("toolgate-watch".to_owned())
            .spawn(move || watcher.run(source))
            .map_err(WatchError)?;
        Ok(Self { signals, thread: Some(thread) })
    }

    /// The changes since the last call. Take them before you read the files: later changes are in the next batch.
    pub fn take_changes(&self) -> Changes {
        self.signals.log.take()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.signals.is_stopped.store(true, Ordering::Release);
        self.signals.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

/// A watch that cannot begin.
#[derive(Debug)]
pub struct WatchError(io::Error);

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "changes of files cannot be watched: {}", self.0)
    }
}

impl Error for WatchError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[derive(Clone, Copy, Debug)]
struct How {
    kernel: Kernel,
    look_every: Duration,
}

/// Is the kernel asked to tell, or do we only look?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kernel {
    Asked,
    #[cfg(test)]
    Avoided,
}

#[derive(Debug)]
struct Signals {
    /// Room for one: a thousand changes are one wake-up.
    wake: SyncSender<()>,
    is_stopped: AtomicBool,
    /// The kernel has dropped events, or could not watch a new folder.
    is_lost: AtomicBool,
    /// A directory or a symlink has come or changed.
    may_have_links: AtomicBool,
    log: ChangeLog,
}

impl Signals {
    fn wake(&self) {
        // Full: it will wake anyway.
        let _ = self.wake.try_send(());
    }

    fn change(&self, paths: Vec<PathBuf>) {
        // Removed symlinks are found by `Plan::again`.
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

/// Where changes are noticed.
enum Source {
    Told {
        plan: Plan,
        notify: RecommendedWatcher,
    },
    /// A fingerprint of what is there, and how many more looks until the kernel is asked again.
    Seen {
        fingerprint: u64,
        looks_left: u32,
    },
}

struct Watcher {
    paths: Vec<PathBuf>,
    ticks: watch::Sender<u64>,
    how: How,
    signals: Arc<Signals>,
    woken: Receiver<()>,
}

impl Watcher {
    fn run(mut self, mut source: Source) {
        loop {
            let is_woken = match self.woken.recv_timeout(self.how.look_every) {
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
            // After the renewal: whoever reads now sees all that happened before we were watching again.
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

    /// The source as it has to be now, and whether something may have changed of which we were not told.
    fn renewed(&mut self, source: Source) -> (Source, bool) {
        match source {
            Source::Told { plan, notify } => {
                let is_lost = self.signals.is_lost.swap(false, Ordering::AcqRel);
                if !is_lost && plan == self.plan_now(&plan) {
                    return (Source::Told { plan, notify }, false);
                }
                // The old one goes first: it may hold what the limits allow.
                drop(notify);
                (self.begin(), true)
            }
            Source::Seen { fingerprint, looks_left: 0 } => {
                let source = self.begin();
                let has_moved =
                    !matches!(source, Source::Seen { fingerprint: now, .. } if now == fingerprint);
                (source, has_moved)
            }
            Source::Seen { fingerprint, looks_left } => {
                let now = scan::fingerprint(&self.paths);
                (Source::Seen { fingerprint: now, looks_left: looks_left - 1 }, now != fingerprint)
            }
        }
    }

    /// Looks for new symlinks only if a name that could hold one has changed.
    fn plan_now(&self, known: &Plan) -> Plan {
        let may_have_links = self.signals.may_have_links.swap(false, Ordering::AcqRel);
        if may_have_links { Plan::of(&self.paths) } else { known.again(&self.paths) }
    }

    fn begin(&mut self) -> Source {
        self.told().unwrap_or_else(|| Source::Seen {
            fingerprint: scan::fingerprint(&self.paths),
            looks_left: LOOKS_BEFORE_ASKING,
        })
    }

    /// Watches registered with the kernel for exactly what is there. `None`: it cannot be had now.
    fn told(&self) -> Option<Source> {
        if self.how.kernel != Kernel::Asked {
            return None;
        }
        let mut plan = Plan::of(&self.paths);
        for _ in 0..ATTEMPTS {
            let watched = self.register(&plan);
            // What came, went or moved meanwhile would stay unwatched.
            let now = Plan::of(&self.paths);
            if let Ok(notify) = watched
                && plan == now
            {
                return Some(Source::Told { plan, notify });
            }
            plan = now;
        }
        None
    }

    fn register(&self, plan: &Plan) -> notify::Result<RecommendedWatcher> {
        let (signals, meant) = (Arc::clone(&self.signals), plan.clone());
        let handler = move |event: notify::Result<Event>| match event {
            Ok(event) if event.need_rescan() || ends_a_watch(&event, &meant) => signals.lose(),
            Ok(event) if is_change(&event) && event.paths.iter().any(|path| meant.concerns(path)) => {
                signals.change(event.paths);
            }
            Ok(_) => {}
            Err(_) => signals.lose(),
        };
        // `walk` does not follow links to folders either.
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

/// Opening and reading change nothing; and who reads after a tick must not cause the next.
fn is_change(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

/// Has a folder gone that is registered with the kernel? Its watch went with it, and the one made in its place may have
/// its very number: only the event tells the two apart.
fn ends_a_watch(event: &Event, plan: &Plan) -> bool {
    let is_leaving = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    is_leaving && event.paths.iter().any(|path| plan.registers(path))
}

const QUIET: Duration = Duration::from_millis(50);
const AT_MOST: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The limits that kept the kernel from telling us may have been raised.
const LOOKS_BEFORE_ASKING: u32 = 60;

/// How often files may come and go while they are being registered.
const ATTEMPTS: u32 = 5;
