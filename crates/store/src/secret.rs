//! Which key does this gateway seal or sign with? 32 random bytes in a private file, made when they are first needed.

use std::{
    error::Error,
    fmt,
    fs::OpenOptions,
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use crate::private;

/// The secret of this name, made at first use. Processes that ask at the same moment get the same bytes. A file that
/// other users can read, or that is not 32 bytes long, is refused: a key that somebody may know seals nothing, and a new
/// one in its place would silently break what the old one has sealed.
pub fn secret_bytes(folder: &Path, name: &str) -> Result<[u8; 32], SecretError> {
    let path = folder.join(name);
    let failed = |error: io::Error| SecretError { path: path.clone(), error };
    if !is_plain(name) {
        let problem = "the name of a secret has letters, digits, `-`, `_` and inner dots only";
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, problem)));
    }
    let file = private::folder(folder).map_err(failed)?.join(name);
    match read(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(&file).map_err(failed),
        found => found.map_err(failed),
    }
}

/// A secret that cannot be had, and why.
#[derive(Debug)]
pub struct SecretError {
    pub path: PathBuf,
    pub error: io::Error,
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the secret `{}` cannot be used: {}", self.path.display(), self.error)
    }
}

impl Error for SecretError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

fn make(path: &Path) -> io::Result<[u8; 32]> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)
        .map_err(|error| io::Error::other(format!("the system has no random bytes: {error}")))?;
    match private::create(path, &secret) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(path),
        made => made.map(|()| secret),
    }
}

fn read(path: &Path) -> io::Result<[u8; 32]> {
    // A link could lead to a file whose content an attacker knows.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    private::check_file(path, &file.metadata()?)?;
    let mut bytes = Vec::with_capacity(33);
    file.take(33).read_to_end(&mut bytes)?;
    bytes.try_into().map_err(|_| {
        let problem = "it does not have 32 bytes; restore it, or delete it to make a new one, with which nothing opens \
                       that the old one has sealed";
        io::Error::new(io::ErrorKind::InvalidData, problem)
    })
}

fn is_plain(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= 64 && !name.starts_with('.') && name.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests;
