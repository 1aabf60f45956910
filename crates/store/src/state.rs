//! The gateway's persistent state: one SQLite file with approvals, trust, tokens and passes.
//!
//! Several processes use it at once, such as the gateway and `toolgate approvals approve`. Each function is therefore one
//! transaction. Only tokens are cached, and only until any process commits. Calls block briefly: a read takes microseconds,
//! a write waits for one disk flush of up to some milliseconds. Async callers may call directly; use `spawn_blocking` for
//! writes that must not delay other tasks.

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

use self::commits::{CommitMark, Commits};
use crate::{private, tokens::TokenCache};

mod changes;
mod commits;
mod error;
mod schema;
#[cfg(test)]
mod tests;

pub use error::StateError;

/// The open state. Dropping it stops its background thread.
pub struct StateDb {
    pub(crate) shared: Arc<SharedState>,
    /// Stops and joins its thread when dropped.
    _poller: changes::Poller,
}

/// How many approvals may be pending.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ApprovalLimits {
    pub max_pending: u32,
    pub max_pending_per_caller: u32,
}

impl StateDb {
    /// Opens the file, creates it if missing, and migrates an older format. A new directory gets mode 0700, the file 0600.
    /// Rejects files that other users can change.
    pub fn open(path: &Path, limits: ApprovalLimits) -> Result<Self, StateError> {
        Self::open_patiently(path, limits, PATIENCE)
    }

    fn open_patiently(path: &Path, limits: ApprovalLimits, patience: Duration) -> Result<Self, StateError> {
        let (path, metadata) =
            ready_file(path).map_err(|error| StateError::File { path: path.to_owned(), error })?;
        let writer = schema::connect(&path, patience)?;
        let reader = schema::connect(&path, patience)?;
        reader.pragma_update(None, "query_only", true).map_err(StateError::at(&path))?;
        let shared = Arc::new(SharedState {
            identity: identity(&metadata),
            limits,
            writer: Mutex::new(writer),
            reader: Mutex::new(StateReader { connection: reader, seen: None }),
            ticks: watch::Sender::new(0),
            used_tokens: Mutex::default(),
            token_cache: RwLock::default(),
            commits: Commits::beside(&path),
            path,
        });
        // The file may have been replaced since `ready_file`; then the identity matches neither connection.
        shared.check_identity()?;
        // Opening may have migrated the file.
        shared.commits.announce();
        shared.check_for_changes();
        let poller = changes::Poller::start(Arc::clone(&shared))?;
        Ok(Self { shared, _poller: poller })
    }

    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Checks that the state can be read now. Without it no API token can be verified.
    pub fn check(&self) -> Result<(), StateError> {
        self.shared.read(|connection| {
            connection.prepare_cached("SELECT 1 FROM tokens LIMIT 1")?.exists([]).map(drop)
        })
    }
}

impl fmt::Debug for StateDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

/// Shared between the state and its background thread.
pub(crate) struct SharedState {
    pub(crate) path: PathBuf,
    /// Device and inode: another file with the same name is not this state.
    identity: (u64, u64),
    pub(crate) limits: ApprovalLimits,
    writer: Mutex<Connection>,
    /// Separate from the writer: readers need not wait for a flush.
    reader: Mutex<StateReader>,
    ticks: watch::Sender<u64>,
    /// Last uses of tokens that are not written to the database yet.
    pub(crate) used_tokens: Mutex<HashMap<String, i64>>,
    /// Cached tokens, each with the version at which it was read.
    pub(crate) token_cache: RwLock<TokenCache>,
    commits: Commits,
}

/// A version of the database. A cached value is valid while the version is unchanged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct StateVersion {
    commits: CommitMark,
    /// Changes also if a process committed without appending to the commit counter.
    tick: u64,
}

struct StateReader {
    connection: Connection,
    /// SQLite's `data_version`, which changes after a commit of another connection. `None`: the file could not be read.
    seen: Option<i64>,
}

impl SharedState {
    /// Runs one transaction that no other writer in any process can interleave with. Commits if `work` returns `Ok`; the
    /// data is on disk when this returns.
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
            // If the file was replaced meanwhile, the data went to a file that no process will read.
            self.check_identity()?;
            value
        };
        self.check_for_changes();
        Ok(outcome)
    }

    /// For a single statement, which sees everything committed before it starts.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StateError> {
        let reader = lock(&self.reader);
        self.check_identity()?;
        work(&reader.connection).map_err(StateError::at(&self.path))
    }

    /// The version to store with a cached value. Call it before reading the value. `None`: nothing can be cached.
    pub(crate) fn version(&self) -> Result<Option<StateVersion>, StateError> {
        self.check_identity()?;
        let tick = *self.ticks.borrow();
        Ok(self.commits.now().map(|commits| StateVersion { commits, tick }))
    }

    /// Ticks if another connection has committed since the last check, or if the file disappeared or reappeared.
    fn check_for_changes(&self) {
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

    /// SQLite would continue to use a deleted or renamed file while other processes use its replacement. A call denied in
    /// one file could then still be approved in the other.
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

/// Stores times as whole milliseconds, rounded down: nothing may be valid longer than intended.
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
    // Happens only if the platform's clock has a narrower range. A time in the past counts as expired.
    time.unwrap_or(UNIX_EPOCH)
}

/// The error for a row that this program cannot have written.
pub(crate) fn unreadable(what: &'static str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(
        UNKNOWN_COLUMN,
        Type::Text,
        format!("{what} cannot be read").into(),
    )
}

/// Ignores poisoning: a panic rolls the transaction back, so the connection stays usable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

/// The canonical path of the file, which exists, is ours and is private. Does not open the file: closing it would drop the
/// locks that another connection of this process holds.
fn ready_file(path: &Path) -> io::Result<(PathBuf, Metadata)> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the state path has no file name"))?;
    let dir = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let real = private::directory(dir)?.join(name);
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

/// How long a transaction waits for locks of other processes.
const PATIENCE: Duration = Duration::from_secs(2);

/// The value that rusqlite uses for an unknown column; its message then omits the column.
const UNKNOWN_COLUMN: usize = usize::MAX;
