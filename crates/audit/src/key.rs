//! The signing key of a journal and its file.

use std::{
    fmt,
    fs::{DirBuilder, File, OpenOptions},
    io::{ErrorKind, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    str::FromStr,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use rustix::process::geteuid;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use zeroize::Zeroizing;

use crate::{JournalError, folder};

/// The secret key of a journal.
pub struct Key {
    signing: SigningKey,
}

/// The public key that verifies signatures: `ed25519:` and base64.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl Key {
    /// Reads the key, or creates one at the first start, readable by this user only. The public key is written to
    /// `<path>.pub`.
    pub fn open_or_create(path: &Path) -> Result<Self, JournalError> {
        let key = match Self::open(path) {
            Err(JournalError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                create(path)?;
                // Read it from disk: another process may have created it first.
                Self::open(path)?
            }
            other => other?,
        };
        publish(path, key.public())?;
        Ok(key)
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.signing.verifying_key())
    }

    /// Signs a text. Its first line must name the kind of the text.
    pub(crate) fn sign(&self, text: &str) -> String {
        STANDARD.encode(self.signing.sign(text.as_bytes()).to_bytes())
    }

    fn open(path: &Path) -> Result<Self, JournalError> {
        let file =
            folder::open_regular(path).map_err(|error| JournalError::io("open the key", path, error))?;
        let meta =
            file.metadata().map_err(|error| JournalError::io("read the metadata of the key", path, error))?;
        let shown = path.display();
        if meta.uid() != geteuid().as_raw() {
            return Err(JournalError::Key(format!(
                "the key `{shown}` belongs to user {}; give it to the user who runs the gateway",
                meta.uid()
            )));
        }
        if meta.mode() & 0o077 != 0 {
            return Err(JournalError::Key(format!(
                "others can read the key `{shown}`; create a new one, or `chmod 600` it if you know that it was not read"
            )));
        }
        let mut text = Zeroizing::new(String::new());
        file.take(MAX_KEY_FILE)
            .read_to_string(&mut text)
            .map_err(|error| JournalError::io("read the key", path, error))?;
        let seed = text.strip_prefix(SECRET_PREFIX).and_then(|rest| rest.strip_suffix('\n')).and_then(decode);
        let seed = seed.ok_or_else(|| {
            JournalError::Key(format!(
                "`{shown}` is not a journal key; restore it, or move it away for a new one"
            ))
        })?;
        Ok(Self { signing: SigningKey::from_bytes(&seed) })
    }
}

impl PublicKey {
    pub(crate) fn has_signed(&self, text: &str, signature: &str) -> bool {
        STANDARD
            .decode(signature)
            .ok()
            .and_then(|bytes| Signature::from_slice(&bytes).ok())
            .is_some_and(|signature| self.0.verify_strict(text.as_bytes(), &signature).is_ok())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.public())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC_PREFIX}{}", STANDARD.encode(self.0.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.strip_prefix(PUBLIC_PREFIX)
            .and_then(decode)
            .and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok())
            // A weak key has signatures that are valid for any text.
            .filter(|key| !key.is_weak())
            .map(Self)
            .ok_or_else(|| {
                format!("`{text}` is not a public key; write `ed25519:` and 44 characters of base64")
            })
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Creates a new key file atomically, and never replaces an existing one.
fn create(path: &Path) -> Result<(), JournalError> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
        made.map_err(|error| JournalError::io("create the directory", parent, error))?;
    }
    let mut seed = Zeroizing::new([0_u8; 32]);
    getrandom::fill(seed.as_mut())
        .map_err(|error| JournalError::Key(format!("no random numbers for a journal key: {error}")))?;
    let text = Zeroizing::new(format!("{SECRET_PREFIX}{}\n", STANDARD.encode(seed.as_ref())));
    let draft = with_ending(path, &format!(".new-{}", std::process::id()));
    let outcome = write_new(&draft, text.as_bytes(), 0o600).and_then(|()| {
        match rustix::fs::link(&draft, path).map_err(std::io::Error::from) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    });
    let removed = std::fs::remove_file(&draft);
    outcome.and(removed).map_err(|error| JournalError::io("create the key", path, error))
}

fn publish(path: &Path, key: PublicKey) -> Result<(), JournalError> {
    let path = with_ending(path, ".pub");
    let text = format!("{key}\n");
    match write_new(&path, text.as_bytes(), 0o644) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        other => return other.map_err(|error| JournalError::io("write the public key", &path, error)),
    }
    let mut found = String::new();
    folder::open_regular(&path)
        .and_then(|file| file.take(MAX_KEY_FILE).read_to_string(&mut found))
        .map_err(|error| JournalError::io("read the public key", &path, error))?;
    if found != text {
        return Err(JournalError::Key(format!(
            "`{}` is not the public key of the key file beside it; find out who changed it, then remove it",
            path.display()
        )));
    }
    Ok(())
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn decode(text: &str) -> Option<[u8; 32]> {
    Zeroizing::new(STANDARD.decode(text).ok()?).as_slice().try_into().ok()
}

const PUBLIC_PREFIX: &str = "ed25519:";
const SECRET_PREFIX: &str = "ed25519-secret:";
const MAX_KEY_FILE: u64 = 4096;

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn key_is_created_once_and_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/keys/journal.key");
        let key = Key::open_or_create(&path).unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(Key::open_or_create(&path).unwrap().public(), key.public());
        let public = fs::read_to_string(with_ending(&path, ".pub")).unwrap();
        assert_eq!(public.trim().parse(), Ok(key.public()));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 2, "no draft is left");
        let secret = fs::read_to_string(&path).unwrap();
        let secret = secret.trim().strip_prefix(SECRET_PREFIX).unwrap();
        assert!(!format!("{key:?}").contains(secret));
    }

    #[track_caller]
    fn check_refused(spoil: impl Fn(&Path), expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.key");
        Key::open_or_create(&path).unwrap();
        spoil(&path);
        let message = Key::open_or_create(&path).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }

    #[test]
    fn key_that_others_may_read_or_wrote_is_refused() {
        check_refused(
            |path| fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap(),
            "others can read the key",
        );
        check_refused(|path| fs::write(path, "ed25519-secret:AAAA\n").unwrap(), "is not a journal key");
        check_refused(|path| fs::write(path, [0xff; 9]).unwrap(), "cannot read the key");
        check_refused(
            |path| fs::write(with_ending(path, ".pub"), "ed25519:x\n").unwrap(),
            "is not the public key",
        );
        check_refused(
            |path| {
                let elsewhere = with_ending(path, ".elsewhere");
                fs::rename(path, &elsewhere).unwrap();
                symlink(elsewhere, path).unwrap();
            },
            "cannot open the key",
        );
        if geteuid().is_root() {
            check_refused(
                |path| std::os::unix::fs::chown(path, Some(65534), None).unwrap(),
                "belongs to user",
            );
        }
    }

    #[test]
    fn signature_is_valid_for_one_text_and_one_key() {
        let folder = tempfile::tempdir().unwrap();
        let ours = Key::open_or_create(&folder.path().join("a")).unwrap();
        let other = Key::open_or_create(&folder.path().join("b")).unwrap();
        let signature = ours.sign("text");
        assert!(ours.public().has_signed("text", &signature));
        assert!(!ours.public().has_signed("texT", &signature));
        assert!(!other.public().has_signed("text", &signature));
        assert!(!ours.public().has_signed("text", "AAAA"));
    }

    #[test]
    fn weak_and_misspelled_public_keys_are_refused() {
        for text in ["ed25519:AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "ed25519:AQ==", "AQ==", ""] {
            assert!(text.parse::<PublicKey>().is_err(), "{text}");
        }
    }
}
