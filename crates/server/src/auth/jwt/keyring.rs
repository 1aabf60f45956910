//! The keys of an issuer: from settings, from a file that is reread when it changes, or from a URL with a cache.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::{task::spawn_blocking, time::timeout};

use super::key_set::{KeySet, MAX_JWKS_BYTES};
use crate::auth::fetch::Fetch;

/// Why a keyring is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Need {
    /// The keys as they are known.
    Known,
    /// A token names a key that is not among them.
    Unknown,
}

#[derive(Debug)]
pub(super) enum Keyring {
    Fixed(Arc<KeySet>),
    File(Arc<FileKeys>),
    Url(Arc<UrlKeys>),
}

impl Keyring {
    pub(super) fn file(path: PathBuf) -> Self {
        Self::File(Arc::new(FileKeys { path, state: Mutex::default() }))
    }

    pub(super) fn url(url: String, refresh: Duration, fetch: Arc<dyn Fetch>) -> Self {
        let gate = tokio::sync::Mutex::new(());
        let state = Mutex::new(UrlState {
            held: CachedKeys { refresh, ..CachedKeys::default() },
            ..UrlState::default()
        });
        Self::Url(Arc::new(UrlKeys { url, fetch, gate, state }))
    }

    /// `Err` tells the operator why no keys can be trusted.
    pub(super) async fn keys(&self, need: Need, now: SystemTime) -> Result<Arc<KeySet>, String> {
        match self {
            Self::Fixed(keys) => Ok(Arc::clone(keys)),
            Self::File(keys) => {
                let keys = Arc::clone(keys);
                spawn_blocking(move || keys.read(now)).await.map_err(|error| error.to_string())?
            }
            Self::Url(keys) => UrlKeys::keys(keys, need, now).await,
        }
    }
}

/// A JWKS in a file.
#[derive(Debug)]
pub(super) struct FileKeys {
    path: PathBuf,
    state: Mutex<FileState>,
}

#[derive(Debug, Default)]
struct FileState {
    checked: Option<SystemTime>,
    stamp: Option<FileStamp>,
    held: CachedKeys,
}

/// Identifies a version of the file. Replaced files have another inode.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct FileStamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileKeys {
    fn read(&self, now: SystemTime) -> Result<Arc<KeySet>, String> {
        let mut state = lock(&self.state);
        if is_due(state.checked, FILE_CHECK_EVERY, now) {
            state.checked = Some(now);
            match self.read_if_changed(state.stamp) {
                Ok(Some((stamp, keys))) => {
                    state.stamp = Some(stamp);
                    state.held.replace(keys, now);
                }
                Ok(None) => state.held.confirm(now),
                Err(why) => {
                    state.stamp = None;
                    state.held.missed(why);
                }
            }
        }
        state.held.trusted(now)
    }

    fn read_if_changed(&self, known: Option<FileStamp>) -> Result<Option<(FileStamp, KeySet)>, String> {
        let say = |error: io::Error| format!("cannot read `{}`: {error}", self.path.display());
        let stamp = stamp(&self.path).map_err(say)?;
        if known == Some(stamp) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let limit = u64::try_from(MAX_JWKS_BYTES).unwrap_or(u64::MAX).saturating_add(1);
        File::open(&self.path).and_then(|file| file.take(limit).read_to_end(&mut bytes)).map_err(say)?;
        let keys = KeySet::from_jwks(&bytes)
            .map_err(|why| format!("`{}` is not usable: {why}", self.path.display()))?;
        Ok(Some((stamp, keys)))
    }
}

fn stamp(path: &Path) -> io::Result<FileStamp> {
    let data = fs::metadata(path)?;
    // A pipe or device could block the reader.
    if !data.is_file() {
        return Err(io::Error::other("not a plain file"));
    }
    Ok(FileStamp {
        inode: data.ino(),
        bytes: data.len(),
        modified: (data.mtime(), data.mtime_nsec()),
        changed: (data.ctime(), data.ctime_nsec()),
    })
}

/// A JWKS at a URL.
pub(super) struct UrlKeys {
    url: String,
    fetch: Arc<dyn Fetch>,
    /// Held during a fetch. Waiting tasks use its result.
    gate: tokio::sync::Mutex<()>,
    state: Mutex<UrlState>,
}

#[derive(Debug, Default)]
struct UrlState {
    held: CachedKeys,
    attempted: Option<SystemTime>,
    /// When a token with an unknown key last caused a fetch.
    surprised: Option<SystemTime>,
}

impl UrlKeys {
    async fn keys(this: &Arc<Self>, need: Need, now: SystemTime) -> Result<Arc<KeySet>, String> {
        {
            let mut state = lock(&this.state);
            if let (Need::Known, Ok(keys)) = (need, state.held.trusted(now)) {
                if state.held.is_due(now) && state.take_attempt(need, now) {
                    let this = Arc::clone(this);
                    tokio::spawn(async move { this.refresh(now).await });
                }
                return Ok(keys);
            }
        }
        // A separate task: a client that disconnects must not cancel the fetch.
        let task = Arc::clone(this);
        let fetched = tokio::spawn(async move {
            let _gate = task.gate.lock().await;
            // A task that waited finds the attempt taken, and uses its result.
            let may_fetch = lock(&task.state).take_attempt(need, now);
            if may_fetch {
                task.load(now).await;
            }
        });
        fetched.await.map_err(|error| error.to_string())?;
        lock(&this.state).held.trusted(now)
    }

    async fn refresh(&self, now: SystemTime) {
        let _gate = self.gate.lock().await;
        self.load(now).await;
    }

    async fn load(&self, now: SystemTime) {
        let fetched = match timeout(FETCH_TIMEOUT, self.fetch.get(&self.url)).await {
            Ok(Ok(bytes)) => KeySet::from_jwks(&bytes),
            Ok(Err(why)) => Err(why),
            Err(_) => Err("no answer in time".into()),
        };
        let mut state = lock(&self.state);
        match fetched {
            Ok(keys) => state.held.replace(keys, now),
            Err(why) => state.held.missed(format!("`{}`: {why}", self.url)),
        }
    }
}

impl UrlState {
    fn take_attempt(&mut self, need: Need, now: SystemTime) -> bool {
        let is_trusted = self.held.trusted(now).is_ok();
        // Tokens with invented keys must not make the gateway flood the issuer.
        let may = match need {
            Need::Unknown if is_trusted => is_due(self.surprised, SURPRISE_EVERY, now),
            _ => is_due(self.attempted, RETRY_AFTER, now),
        };
        if may {
            self.attempted = Some(now);
            if need == Need::Unknown {
                self.surprised = Some(now);
            }
        }
        may
    }
}

impl fmt::Debug for UrlKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrlKeys").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Keys with the time when their source last confirmed them.
#[derive(Debug, Default)]
struct CachedKeys {
    keys: Option<(Arc<KeySet>, SystemTime)>,
    /// The age at which the source is asked again.
    refresh: Duration,
    /// The last error since then.
    why: Option<String>,
}

impl CachedKeys {
    fn replace(&mut self, keys: KeySet, now: SystemTime) {
        self.keys = Some((Arc::new(keys), now));
        self.why = None;
    }

    fn confirm(&mut self, now: SystemTime) {
        if let Some((_, vouched)) = &mut self.keys {
            *vouched = now;
        }
    }

    fn missed(&mut self, why: String) {
        self.why = Some(why);
    }

    fn is_due(&self, now: SystemTime) -> bool {
        is_due(self.keys.as_ref().map(|(_, vouched)| *vouched), self.refresh, now)
    }

    /// Keys are used for one more hour if their source fails. Then tokens of this issuer are rejected.
    fn trusted(&self, now: SystemTime) -> Result<Arc<KeySet>, String> {
        match &self.keys {
            Some((keys, vouched)) if !is_due(Some(*vouched), self.refresh + TRUST_FOR, now) => {
                Ok(Arc::clone(keys))
            }
            _ => Err(self.why.clone().unwrap_or_else(|| "the keys are not loaded yet".into())),
        }
    }
}

/// Everything is due if the clock was set back by more than `CLOCK_BLINK`.
fn is_due(last: Option<SystemTime>, every: Duration, now: SystemTime) -> bool {
    let Some(last) = last else { return true };
    match now.duration_since(last) {
        Ok(passed) => passed >= every,
        Err(ahead) => ahead.duration() > CLOCK_BLINK,
    }
}

/// Ignores poisoning: no value is changed in several steps that could panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const FILE_CHECK_EVERY: Duration = Duration::from_secs(1);
const TRUST_FOR: Duration = Duration::from_hours(1);
const RETRY_AFTER: Duration = Duration::from_secs(10);
const SURPRISE_EVERY: Duration = Duration::from_secs(30);
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
const CLOCK_BLINK: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
