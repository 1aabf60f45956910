//! Secrets at rest: values that tools and upstream servers name as `${NAME}`, in one encrypted file of the state directory.
//!
//! Several processes use the file at once. A writer holds a lock from reading to writing and replaces the file. Readers compare
//! the file's identity at each lookup, so a change of another process counts at once.

mod content;
mod format;
mod key;
mod key_source;
mod program;
mod provider;

use std::{
    error::Error,
    fmt,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use rustix::fs::OFlags;
use toolgate_policy::SecretConsumer;
use toolgate_spec::is_variable_name;
use zeroize::Zeroizing;

pub use self::{
    content::SecretScope,
    key_source::{KeyOrigin, KeyPlace, PassphraseSource, VaultKeySettings},
    provider::{CommandSecrets, FileSecrets},
};

use self::{
    content::{SecretEntry, VaultContent},
    format::{MAX_FILE_BYTES, SealedVault},
    key::VaultKey,
    key_source::{PlacedKey, lock_directory},
};
use crate::{
    private,
    state::{from_ms, to_ms},
};

/// The encrypted file and its key.
#[derive(Debug)]
pub struct SecretVault {
    path: PathBuf,
    keys: VaultKeySettings,
    cache: Mutex<VaultCache>,
}

/// The result of a lookup.
#[derive(Clone, Eq, PartialEq)]
pub enum StoredSecret {
    Value(Zeroizing<String>),
    /// The secret exists, but is not for this consumer.
    NotForConsumer,
    Absent,
}

/// A secret without its value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListedSecret {
    pub name: String,
    pub scope: SecretScope,
    pub set: SystemTime,
}

/// Identifies the content of the file at one moment. Equal marks mean an unchanged store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VaultMark {
    file: Option<FileMark>,
    is_open: bool,
}

/// Why the secret store cannot be used. Contains no secrets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VaultError(String);

impl SecretVault {
    /// Names the file in this state directory. Nothing is opened or created yet.
    pub fn new(state: &Path, keys: VaultKeySettings) -> Self {
        let path = state.join(DIRECTORY).join(FILE);
        Self { path, keys, cache: Mutex::default() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Directories that tools may write to, or that are copied together with the store.
    pub fn apart_from(&self) -> &[PathBuf] {
        &self.keys.apart_from
    }

    pub fn exists(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok()
    }

    /// The current value for this consumer.
    pub fn get(&self, name: &str, consumer: SecretConsumer<'_>) -> Result<StoredSecret, VaultError> {
        let Some(content) = self.content()? else { return Ok(StoredSecret::Absent) };
        Ok(match content.entries.get(name) {
            None => StoredSecret::Absent,
            Some(entry) if entry.scope.allows(consumer) => StoredSecret::Value(entry.value.clone()),
            Some(_) => StoredSecret::NotForConsumer,
        })
    }

    /// All secrets in order of their names, without values.
    pub fn list(&self) -> Result<Vec<ListedSecret>, VaultError> {
        let content = self.content()?.unwrap_or_default();
        let listed = content.entries.iter().map(|(name, entry)| ListedSecret {
            name: name.clone(),
            scope: entry.scope.clone(),
            set: from_ms(entry.set_ms),
        });
        Ok(listed.collect())
    }

    /// Adds or replaces a secret. The first one creates file and key. An empty scope keeps the scope of an existing secret.
    /// Returns the place of the key.
    pub fn set(
        &self,
        name: &str,
        value: Zeroizing<String>,
        scope: SecretScope,
        now: SystemTime,
    ) -> Result<KeyOrigin, VaultError> {
        check_name(name)?;
        check_value(&value)?;
        self.change(|content| {
            if content.entries.len() >= MAX_ENTRIES && !content.entries.contains_key(name) {
                return Err(VaultError(format!(
                    "the store holds at most {MAX_ENTRIES} secrets; remove one first"
                )));
            }
            // A new value must not be for more consumers by accident.
            let known = content.entries.get(name).filter(|_| scope.is_empty());
            let scope = known.map_or(scope, |known| known.scope.clone());
            let entry = SecretEntry { value, scope, set_ms: to_ms(now) };
            content.entries.insert(name.to_owned(), entry);
            Ok(())
        })
        .map(|(origin, ())| origin)
    }

    /// Returns whether there was such a secret.
    pub fn remove(&self, name: &str) -> Result<bool, VaultError> {
        if !self.exists() {
            return Ok(false);
        }
        self.change(|content| Ok(content.entries.remove(name).is_some())).map(|(_, was_there)| was_there)
    }

    /// Encrypts everything with a new key and deletes the old one. The old key is looked for everywhere, so this also moves the
    /// key to the configured place. A crash leaves the file and a key that opens it.
    pub fn rotate(&self) -> Result<KeyOrigin, VaultError> {
        let _locked = self.lock()?;
        let sealed = self.read_file()?.ok_or_else(|| VaultError("there are no secrets yet".to_owned()))?.1;
        let old = self.keys.anywhere().find(&sealed.lock).map_err(VaultError)?;
        let content = sealed.open(&old.key).ok_or_else(damaged)?;
        let new = self.keys.create(Some(&old)).map_err(VaultError)?;
        if let Err(error) = self.write(content, &new) {
            let _ = self.keys.forget(&new);
            return Err(error);
        }
        self.cache().key = Some(new.clone());
        self.keys.forget(&old).map_err(|problem| {
            VaultError(format!("the secrets have a new key, but the old one could not be deleted: {problem}"))
        })?;
        Ok(new.origin)
    }

    /// The place of the key. `None`: there is no store yet.
    pub fn key_origin(&self) -> Result<Option<KeyOrigin>, VaultError> {
        self.content()?;
        Ok(self.cache().key.as_ref().map(|key| key.origin.clone()).filter(|_| self.exists()))
    }

    /// Compare with an earlier mark to notice changes of other processes.
    pub fn mark(&self) -> VaultMark {
        let is_open = self.content().is_ok();
        VaultMark { file: self.cache().file, is_open }
    }

    /// The decrypted file, from the cache if it is unchanged. `None`: there is none.
    fn content(&self) -> Result<Option<Arc<VaultContent>>, VaultError> {
        let mut cache = self.cache();
        let now = match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *cache = VaultCache { key: cache.key.take(), ..VaultCache::default() };
                return Ok(None);
            }
            found => FileMark::of(&found.map_err(|error| self.broken(&error))?),
        };
        if cache.file == Some(now) {
            match &cache.opened {
                Some(Ok(content)) => return Ok(Some(Arc::clone(content))),
                // The keyring may be unlocked meanwhile, so a failure counts only for a while.
                Some(Err((error, at))) if at.elapsed() < RETRY => return Err(error.clone()),
                _ => {}
            }
        }
        let opened = self.open(&mut cache);
        if let Err(error) = &opened {
            cache.file = Some(now);
            cache.opened = Some(Err((error.clone(), Instant::now())));
        }
        opened
    }

    fn open(&self, cache: &mut VaultCache) -> Result<Option<Arc<VaultContent>>, VaultError> {
        let Some((mark, sealed)) = self.read_file()? else { return Ok(None) };
        let key = match &cache.key {
            Some(key) if key.lock == sealed.lock => key.clone(),
            _ => self.keys.find(&sealed.lock).map_err(VaultError)?,
        };
        let content = Arc::new(sealed.open(&key.key).ok_or_else(damaged)?);
        *cache = VaultCache { file: Some(mark), opened: Some(Ok(Arc::clone(&content))), key: Some(key) };
        Ok(Some(content))
    }

    /// Reads, changes and writes while no other process does.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut VaultContent) -> Result<T, VaultError>,
    ) -> Result<(KeyOrigin, T), VaultError> {
        let _locked = self.lock()?;
        let (mut content, key, is_new) = match self.content()? {
            Some(content) => {
                let key = self.cache().key.clone().ok_or_else(damaged)?;
                ((*content).clone(), key, false)
            }
            None => (VaultContent::default(), self.keys.create(None).map_err(VaultError)?, true),
        };
        let written = change(&mut content).and_then(|value| self.write(content, &key).map(|()| value));
        if written.is_err() && is_new {
            let _ = self.keys.forget(&key);
        }
        let value = written?;
        let origin = key.origin.clone();
        self.cache().key = Some(key);
        Ok((origin, value))
    }

    fn write(&self, mut content: VaultContent, key: &PlacedKey) -> Result<(), VaultError> {
        content.generation = content.generation.saturating_add(1);
        let file = SealedVault::seal(&content, &key.lock, &key.key).map_err(VaultError)?;
        private::replace(&self.path, &file).map_err(|error| self.broken(&error))
    }

    fn lock(&self) -> Result<File, VaultError> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let locked = private::directory(dir).and_then(|dir| lock_directory(&dir));
        locked.map_err(|error| self.broken(&error))
    }

    fn read_file(&self) -> Result<Option<(FileMark, SealedVault)>, VaultError> {
        match read_private(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.broken(&error)),
            Ok((mark, bytes)) => Ok(Some((mark, SealedVault::parse(&bytes).ok_or_else(damaged)?))),
        }
    }

    fn cache(&self) -> MutexGuard<'_, VaultCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn broken(&self, error: &io::Error) -> VaultError {
        VaultError(format!("`{}`: {error}", self.path.display()))
    }
}

/// The last version of the file that this process read.
#[derive(Default)]
struct VaultCache {
    file: Option<FileMark>,
    opened: Option<Result<Arc<VaultContent>, (VaultError, Instant)>>,
    key: Option<PlacedKey>,
}

impl fmt::Debug for StoredSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value(_) => "Value",
            Self::NotForConsumer => "NotForConsumer",
            Self::Absent => "Absent",
        })
    }
}

impl fmt::Debug for VaultCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VaultCache").field("file", &self.file).finish_non_exhaustive()
    }
}

/// A new file has another inode or another change time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct FileMark {
    file: (u64, u64),
    length: u64,
    changed: (i64, i64),
}

impl FileMark {
    fn of(file: &Metadata) -> Self {
        Self {
            file: (file.dev(), file.ino()),
            length: file.len(),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

impl fmt::Display for VaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the secret store cannot be used: {}", self.0)
    }
}

impl Error for VaultError {}

/// Whether these bytes are a store that this key opens. For the fuzzer.
pub fn is_vault_of(bytes: &[u8], key: [u8; 32]) -> bool {
    SealedVault::parse(bytes).is_some_and(|sealed| sealed.open(&VaultKey::from(key)).is_some())
}

fn damaged() -> VaultError {
    VaultError(
        "its file was changed or damaged; restore it from a backup, or delete it and set the secrets again"
            .to_owned(),
    )
}

fn read_private(path: &Path) -> io::Result<(FileMark, Vec<u8>)> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    private::check_file(path, &metadata)?;
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too large"));
    }
    Ok((FileMark::of(&metadata), bytes))
}

fn check_name(name: &str) -> Result<(), VaultError> {
    if is_variable_name(name) && name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    Err(VaultError(format!(
        "a name has upper-case letters, digits and `_`, does not begin with a digit, and is at most {MAX_NAME_BYTES} bytes long"
    )))
}

fn check_value(value: &str) -> Result<(), VaultError> {
    if value.trim().is_empty() {
        return Err(VaultError("the value is empty".to_owned()));
    }
    if value.len() > MAX_VALUE_BYTES || value.contains('\0') {
        return Err(VaultError(format!("a value is text of at most {} KiB", MAX_VALUE_BYTES >> 10)));
    }
    Ok(())
}

const DIRECTORY: &str = "secrets";
const FILE: &str = "store";
/// How long a failure to open the file counts.
const RETRY: Duration = Duration::from_secs(30);
const MAX_ENTRIES: usize = 1_000;
const MAX_NAME_BYTES: usize = 128;
const MAX_VALUE_BYTES: usize = 32 << 10;

#[cfg(test)]
mod tests;
