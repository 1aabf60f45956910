//! What does the gateway remember between calls, restarts and processes? One SQLite file: approvals, trust, tokens, passes.
//!
//! Several processes use it at once, the gateway and `toolgate approvals approve` beside it. So each function is one
//! transaction, and nothing is believed from memory but tokens, and those only while nobody has committed anything. Calls block, but briefly: a read takes microseconds, and a write
//! waits for one flush of the disk, which may be milliseconds. Async callers may call them directly; one that must not
//! wait for a disk wraps its writes in `spawn_blocking`.

use std::{
    collections::HashMap,
    fmt,
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rusqlite::{Connection, Transaction, TransactionBehavior, types::Type};
use tokio::sync::watch;

use self::commits::{Commits, Moment};
use crate::{private, tokens::KnownTokens};

mod changes;
mod commits;
mod error;
mod schema;
#[cfg(test)]
mod tests;

pub use error::StateError;

/// The open state. It ends its own thread when it is dropped.
pub struct State {
    pub(crate) shared: Arc<Shared>,
    /// Ends, and is waited for, when it is dropped.
    _poller: changes::Poller,
}

/// How many questions may wait for an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    pub max_pending: u32,
    pub max_pending_per_caller: u32,
}

impl State {
    /// Opens the file, makes it where it is missing, and brings an older one up to date. The folder becomes 0700 where
    /// it is made, the file is 0600; what other users could change is refused.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, StateError> {
        Self::open_patiently(path, limits, PATIENCE)
    }

    fn open_patiently(path: &Path, limits: Limits, patience: Duration) -> Result<Self, StateError> {
        let (path, metadata) =
            ready_file(path).map_err(|error| StateError::File { path: path.to_owned(), error })?;
        let writer = schema::connect(&path, patience)?;
        let reader = schema::connect(&path, patience)?;
        reader.pragma_update(None, "query_only", true).map_err(StateError::at(&path))?;
        let shared = Arc::new(Shared {
            identity: identity(&metadata),
            limits,
            writer: Mutex::new(writer),
            reader: Mutex::new(Reader { connection: reader, seen: None }),
            ticks: watch::Sender::new(0),
            used_tokens: Mutex::default(),
            known_tokens: RwLock::default(),
            commits: Commits::beside(&path),
            path,
        });
        // Another file under the name by now, and the identity would be that of neither connection.
        shared.check_identity()?;
        // It opened, and may have brought the file up to date.
        shared.commits.announce();
        shared.look();
        let poller = changes::Poller::start(Arc::clone(&shared))?;
        Ok(Self { shared, _poller: poller })
    }

    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Can it be read just now? Without it nobody who comes with a token of ours is known.
    pub fn check(&self) -> Result<(), StateError> {
        self.shared.read(|connection| {
            connection.prepare_cached("SELECT 1 FROM tokens LIMIT 1")?.exists([]).map(drop)
        })
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

/// What the state and its thread have in common.
pub(crate) struct Shared {
    pub(crate) path: PathBuf,
    /// Device and inode: another file under the same name is not our state.
    identity: (u64, u64),
    pub(crate) limits: Limits,
    writer: Mutex<Connection>,
    /// Apart from the writer: who only looks does not wait for somebody else's flush.
    reader: Mutex<Reader>,
    ticks: watch::Sender<u64>,
    /// When tokens were last used, until it is written down.
    pub(crate) used_tokens: Mutex<HashMap<String, i64>>,
    /// Tokens as they were at a moment.
    pub(crate) known_tokens: RwLock<KnownTokens>,
    commits: Commits,
}

/// Since when is something known? It is still so while the present is the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Present {
    moment: Moment,
    /// Moves also for those who commit and tell nobody.
    tick: u64,
}

struct Reader {
    connection: Connection,
    /// SQLite's `data_version`, which differs after a commit of anybody else. `None`: the file could not be read.
    seen: Option<i64>,
}

impl Shared {
    /// One transaction that no other writer, in whichever process, can come between. It is kept if `work` is `Ok`, and
    /// is on the disk when this returns.
    pub(crate) fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StateError> {
        let outcome = {
            let mut writer = lock(&self.writer);
            let transaction = writer
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(StateError::at(&self.path))?;
            self.check_identity()?;
            let value = work(&transaction).map_err(StateError::at(&self.path))?;
            transaction.commit().map_err(StateError::at(&self.path))?;
            self.commits.announce();
            // Replaced meanwhile: what was written is where nobody will look for it.
            self.check_identity()?;
            value
        };
        self.look();
        Ok(outcome)
    }

    /// For a single statement, which sees what is committed when it begins.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StateError> {
        let reader = lock(&self.reader);
        self.check_identity()?;
        work(&reader.connection).map_err(StateError::at(&self.path))
    }

    /// To be asked for before something is read that shall be remembered. `None`: nothing can be.
    pub(crate) fn present(&self) -> Result<Option<Present>, StateError> {
        self.check_identity()?;
        let tick = *self.ticks.borrow();
        Ok(self.commits.now().map(|moment| Present { moment, tick }))
    }

    /// Ticks if anybody has changed anything since the last look, or if the file has gone or come back.
    fn look(&self) {
        let mut reader = lock(&self.reader);
        let version = self.check_identity().ok().and_then(|()| data_version(&reader.connection).ok());
        if reader.seen != version {
            reader.seen = version;
            drop(reader);
            self.ticks.send_modify(|tick| *tick = tick.wrapping_add(1));
        }
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.ticks.subscribe()
    }

    /// SQLite would go on with a file that was deleted or renamed, and other processes with the one in its place: what
    /// one of them denies, the other would still hold for approved.
    fn check_identity(&self) -> Result<(), StateError> {
        match fs::symlink_metadata(&self.path) {
            Ok(metadata) if identity(&metadata) == self.identity => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StateError::File { path: self.path.clone(), error })
            }
            _ => Err(StateError::Replaced(self.path.clone())),
        }
    }
}

/// Times are kept as whole milliseconds, rounded down, so that nothing lives longer than it was given.
pub(crate) fn to_ms(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => {
            let ms = before.duration().as_nanos().div_ceil(1_000_000);
            i64::try_from(ms).map_or(i64::MIN, |ms| -ms)
        }
    }
}

pub(crate) fn from_ms(ms: i64) -> SystemTime {
    let distance = Duration::from_millis(ms.unsigned_abs());
    let time = if ms < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    // Only a clock with a narrower range than 64 bits of seconds comes here; the past has expired.
    time.unwrap_or(UNIX_EPOCH)
}

/// A row that this program cannot have written.
pub(crate) fn unreadable(what: &'static str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(
        UNKNOWN_COLUMN,
        Type::Text,
        format!("{what} cannot be read").into(),
    )
}

/// A panic while the lock was held rolled its transaction back, so that the connection is as good as before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

/// The real path of the file, which exists, is ours and private. It is never opened here: closing it again would drop the
/// locks that another connection of this process holds.
fn ready_file(path: &Path) -> io::Result<(PathBuf, Metadata)> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path of the state names no file"))?;
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let real = private::folder(folder)?.join(name);
    if let Err(error) = fs::symlink_metadata(&real) {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        match private::create(&real, &[]) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let metadata = fs::symlink_metadata(&real)?;
    private::check_file(&real, &metadata)?;
    Ok((real, metadata))
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// How long a transaction waits for those of other processes.
const PATIENCE: Duration = Duration::from_secs(2);

/// As SQLite's binding has it, which then leaves the column out of the message.
const UNKNOWN_COLUMN: usize = usize::MAX;
