//! The places that keep the key of the secret store: the keyring, a systemd credential, a key file, or a person's memory.
//!
//! A file names its key by id, so a place may hold the keys of several stores, and a wrong key is never used.

use std::{
    fmt,
    fs::{File, Metadata, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{FlockOperation, OFlags, flock};
use zeroize::Zeroizing;

use super::{
    format::{LockKind, VaultLock},
    key::{KeyId, PassphraseCost, SALT_BYTES, VaultKey},
    program::HelperProgram,
};
use crate::private;

/// Which place keeps the key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyPlace {
    /// The credential if there is one, else the keyring if it works, else the key file.
    Auto,
    Keyring,
    Credential,
    File,
    Passphrase,
}

/// Asks for the passphrase. Implemented by programs that have a terminal or a file for it.
pub trait PassphraseSource: Send + Sync {
    /// The passphrase that opens the store.
    fn current(&self) -> Result<Zeroizing<String>, String>;

    /// A new passphrase, for a new store or a rotation.
    fn new_one(&self) -> Result<Zeroizing<String>, String>;
}

/// The places to look for the key.
#[derive(Clone)]
pub struct VaultKeySettings {
    pub place: KeyPlace,
    pub key_file: Option<PathBuf>,
    /// `$CREDENTIALS_DIRECTORY`.
    pub credentials: Option<PathBuf>,
    /// Directories that the key must not be in, because they are copied together with the store.
    pub apart_from: Vec<PathBuf>,
    pub passphrase: Arc<dyn PassphraseSource>,
}

/// The place in which a key was found or created.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum KeyOrigin {
    Keyring,
    Credential(PathBuf),
    File(PathBuf),
    Passphrase,
}

impl fmt::Display for KeyOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keyring => f.write_str("the keyring"),
            Self::Credential(path) => write!(f, "the credential {}", path.display()),
            Self::File(path) => write!(f, "the key file {}", path.display()),
            Self::Passphrase => f.write_str("a passphrase"),
        }
    }
}

/// A key and its place.
#[derive(Clone, Debug)]
pub(crate) struct PlacedKey {
    pub key: VaultKey,
    pub lock: VaultLock,
    pub origin: KeyOrigin,
}

impl PlacedKey {
    fn stored(key: VaultKey, origin: KeyOrigin) -> Self {
        Self { lock: VaultLock { id: key.id(), kind: LockKind::Stored }, key, origin }
    }
}

impl VaultKeySettings {
    /// The key that a file names.
    pub(crate) fn find(&self, lock: &VaultLock) -> Result<PlacedKey, String> {
        if let LockKind::Passphrase { salt, cost } = &lock.kind {
            if !matches!(self.place, KeyPlace::Auto | KeyPlace::Passphrase) {
                return Err(format!(
                    "it is locked with a passphrase, but `secrets.key` is `{}`; run `toolgate secret rotate` to move it there",
                    self.place.name()
                ));
            }
            let key = VaultKey::derived(&self.passphrase.current()?, salt, *cost)?;
            if key.id() != lock.id {
                return Err("wrong passphrase".to_owned());
            }
            return Ok(PlacedKey { key, lock: lock.clone(), origin: KeyOrigin::Passphrase });
        }
        let mut problems = Vec::new();
        let places = match self.place {
            // The keyring last: a program has to be run for it.
            KeyPlace::Auto => vec![KeyPlace::Credential, KeyPlace::File, KeyPlace::Keyring],
            place => vec![place],
        };
        for place in places {
            match self.look_in(place, lock.id) {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => problems.push(format!("{} does not have it", self.describe(place))),
                Err(problem) => problems.push(problem),
            }
        }
        Err(format!("its key {} was not found: {}", lock.id.hex(), problems.join("; ")))
    }

    /// A key for a new file, kept in the configured place. `besides` is the key to replace.
    pub(crate) fn create(&self, besides: Option<&PlacedKey>) -> Result<PlacedKey, String> {
        let mut problems = Vec::new();
        let has_credential = self.credential().is_some_and(|path| path.exists());
        let places = match self.place {
            // A weaker place must not take over from a credential that cannot be rotated now.
            KeyPlace::Auto if has_credential => vec![KeyPlace::Credential],
            KeyPlace::Auto => vec![KeyPlace::Keyring, KeyPlace::File],
            place => vec![place],
        };
        for place in places {
            match self.create_in(place, besides) {
                Ok(created) => return Ok(created),
                Err(problem) => problems.push(problem),
            }
        }
        Err(format!("no place for the key: {}", problems.join("; ")))
    }

    /// Deletes a key that no file uses any more. A credential is the operator's to delete.
    pub(crate) fn forget(&self, old: &PlacedKey) -> Result<(), String> {
        match &old.origin {
            KeyOrigin::Keyring => secret_tool(&["clear"], old.lock.id, &[], &self.apart_from).map(drop),
            KeyOrigin::File(path) => edit_key_file(path, |lines| {
                lines.retain(|line| VaultKey::from_line(line).is_none_or(|key| key.id() != old.lock.id));
            }),
            KeyOrigin::Credential(_) | KeyOrigin::Passphrase => Ok(()),
        }
    }

    /// The same settings, but keys are looked for everywhere.
    pub(crate) fn anywhere(&self) -> Self {
        Self { place: KeyPlace::Auto, ..self.clone() }
    }

    fn look_in(&self, place: KeyPlace, id: KeyId) -> Result<Option<PlacedKey>, String> {
        let found = |key: Option<VaultKey>, origin| Ok(key.map(|key| PlacedKey::stored(key, origin)));
        match place {
            KeyPlace::Auto | KeyPlace::Passphrase => Ok(None),
            KeyPlace::Keyring => {
                let line = secret_tool(&["lookup"], id, &[], &self.apart_from)?;
                let key = std::str::from_utf8(&line).ok().and_then(VaultKey::from_line);
                found(key.filter(|key| key.id() == id), KeyOrigin::Keyring)
            }
            KeyPlace::Credential => {
                let path = self.credential().ok_or(NO_CREDENTIAL)?;
                let keys = read_keys(&path, check_credential)?;
                found(keys.into_iter().find(|key| key.id() == id), KeyOrigin::Credential(path))
            }
            KeyPlace::File => {
                let path = self.checked_key_file()?;
                let keys = read_keys(&path, private::check_file)?;
                found(keys.into_iter().find(|key| key.id() == id), KeyOrigin::File(path))
            }
        }
    }

    fn create_in(&self, place: KeyPlace, besides: Option<&PlacedKey>) -> Result<PlacedKey, String> {
        match place {
            KeyPlace::Auto => Err("no place is named".to_owned()),
            KeyPlace::Keyring => {
                let key = VaultKey::random()?;
                secret_tool(
                    &["store", "--label=Toolgate secrets"],
                    key.id(),
                    key.to_line().as_bytes(),
                    &self.apart_from,
                )?;
                // Some keyrings accept a secret and lose it.
                self.look_in(place, key.id())?.ok_or_else(|| "the keyring did not keep the key".to_owned())
            }
            KeyPlace::Credential => {
                let path = self.credential().ok_or(NO_CREDENTIAL)?;
                let first = read_keys(&path, check_credential)?.into_iter().next();
                let first = first.ok_or_else(|| format!("`{}` has no key; {HOW_TO_MAKE}", path.display()))?;
                if besides.is_some_and(|old| old.lock.id == first.id()) {
                    return Err(format!(
                        "`{}` is read-only; put a new key in its first line and keep the old one in the second, then rotate",
                        path.display()
                    ));
                }
                Ok(PlacedKey::stored(first, KeyOrigin::Credential(path)))
            }
            KeyPlace::File => {
                let path = self.checked_key_file()?;
                let key = VaultKey::random()?;
                edit_key_file(&path, |lines| lines.push(key.to_line()))?;
                Ok(PlacedKey::stored(key, KeyOrigin::File(path)))
            }
            KeyPlace::Passphrase => {
                let passphrase = self.passphrase.new_one()?;
                let mut salt = [0; SALT_BYTES];
                getrandom::fill(&mut salt)
                    .map_err(|error| format!("the system returned no random bytes: {error}"))?;
                let cost = PassphraseCost::default();
                let key = VaultKey::derived(&passphrase, &salt, cost)?;
                let lock = VaultLock { id: key.id(), kind: LockKind::Passphrase { salt, cost } };
                Ok(PlacedKey { key, lock, origin: KeyOrigin::Passphrase })
            }
        }
    }

    fn credential(&self) -> Option<PathBuf> {
        self.credentials.as_ref().map(|dir| dir.join(CREDENTIAL))
    }

    /// The key file, in a directory that is not copied together with the store.
    fn checked_key_file(&self) -> Result<PathBuf, String> {
        let path = self.key_file.as_ref().ok_or("no key file: HOME is not set; set `secrets.key_file`")?;
        let (dir, name) = (path.parent().unwrap_or(Path::new("/")), path.file_name().unwrap_or_default());
        let real = real_path(dir).join(name);
        for other in &self.apart_from {
            if real.starts_with(real_path(other)) {
                return Err(format!(
                    "the key file `{}` is inside `{}`, where a copy of the secrets would include it; set `secrets.key_file` to a path outside",
                    path.display(),
                    other.display()
                ));
            }
        }
        Ok(real)
    }

    fn describe(&self, place: KeyPlace) -> String {
        match place {
            KeyPlace::Credential => "the credential".to_owned(),
            KeyPlace::File => {
                format!("the key file {}", self.key_file.as_deref().unwrap_or(Path::new("")).display())
            }
            _ => "the keyring".to_owned(),
        }
    }
}

impl KeyPlace {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Keyring => "keyring",
            Self::Credential => "credential",
            Self::File => "file",
            Self::Passphrase => "passphrase",
        }
    }
}

impl fmt::Debug for VaultKeySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VaultKeySettings")
            .field("place", &self.place)
            .field("key_file", &self.key_file)
            .finish_non_exhaustive()
    }
}

/// Resolves symlinks in the part of the path that exists.
fn real_path(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    let mut known = path;
    loop {
        if let Ok(real) = known.canonicalize() {
            return missing.into_iter().rev().fold(real, |real: PathBuf, name| real.join(name));
        }
        let (Some(parent), Some(name)) = (known.parent(), known.file_name()) else {
            return path.to_owned();
        };
        missing.push(name);
        known = parent;
    }
}

/// `secret-tool` talks to the keyring of the desktop session (Secret Service).
fn secret_tool(
    command: &[&str],
    id: KeyId,
    input: &[u8],
    apart_from: &[PathBuf],
) -> Result<Zeroizing<Vec<u8>>, String> {
    let attributes = ["service".to_owned(), "toolgate".to_owned(), "key".to_owned(), id.hex()];
    let argv: Vec<String> = std::iter::once("secret-tool".to_owned())
        .chain(command.iter().map(|&word| word.to_owned()))
        .chain(attributes)
        .collect();
    let output = HelperProgram { argv: &argv, input, pass_env: &[], apart_from }.output();
    output.map_err(|problem| format!("the keyring cannot be used: {problem}"))
}

/// One key a line. Empty lines and lines with `#` are skipped; a missing file has no keys.
fn read_keys(path: &Path, check: KeyFileCheck) -> Result<Vec<VaultKey>, String> {
    let lines = read_lines(path, check).map_err(|error| format!("`{}`: {error}", path.display()))?;
    lines
        .iter()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| {
            VaultKey::from_line(line)
                .ok_or_else(|| format!("`{}` has a line that is not a key; {HOW_TO_MAKE}", path.display()))
        })
        .collect()
}

/// Rejects a file that other users can read.
type KeyFileCheck = fn(&Path, &Metadata) -> io::Result<()>;

/// systemd leaves a credential to root and lets the service read it by an access control list, which shows as a group's right.
fn check_credential(_path: &Path, metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() && metadata.mode() & READABLE_BY_ALL == 0 {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "other users can read this credential"))
}

fn read_lines(path: &Path, check: KeyFileCheck) -> io::Result<Vec<Zeroizing<String>>> {
    // Do not follow symlinks: one could point to a file whose content an attacker knows.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    check(path, &file.metadata()?)?;
    let mut text = Zeroizing::new(String::with_capacity(MAX_KEY_FILE));
    file.take(u64::try_from(MAX_KEY_FILE).unwrap_or(u64::MAX)).read_to_string(&mut text)?;
    Ok(text.lines().map(|line| Zeroizing::new(line.to_owned())).collect())
}

/// Replaces the key file. Other processes wait meanwhile: they may add the keys of other stores.
fn edit_key_file(path: &Path, edit: impl FnOnce(&mut Vec<Zeroizing<String>>)) -> Result<(), String> {
    let write = || {
        let dir = private::directory(path.parent().unwrap_or(Path::new("/")))?;
        let _locked = lock_directory(&dir)?;
        let mut lines = read_lines(path, private::check_file)?;
        edit(&mut lines);
        let length = lines.iter().map(|line| line.len().saturating_add(1)).sum();
        let mut text = Zeroizing::new(String::with_capacity(length));
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        private::replace(path, text.as_bytes())
    };
    write().map_err(|error: io::Error| format!("`{}`: {error}", path.display()))
}

/// Held until the file is dropped.
pub(crate) fn lock_directory(dir: &Path) -> io::Result<File> {
    let file = File::open(dir)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

const CREDENTIAL: &str = "toolgate.key";
const NO_CREDENTIAL: &str = "no credential: CREDENTIALS_DIRECTORY is not set; add `LoadCredentialEncrypted=toolgate.key:…` to the unit";
const HOW_TO_MAKE: &str = "make one with `head -c 32 /dev/urandom | base64`";
const READABLE_BY_ALL: u32 = 0o007;
const MAX_KEY_FILE: usize = 64 << 10;
