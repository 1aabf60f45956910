//! The gateway's keys for sealing and signing: 32 random bytes in a private file, created at first use.

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

/// Returns the secret of this name and creates it at first use. Concurrent processes get the same bytes. Rejects a file
/// that other users can read or that is not 32 bytes long. It does not create a replacement, because data sealed with the
/// old secret would silently become unreadable.
pub fn secret_bytes(folder: &Path, name: &str) -> Result<[u8; 32], SecretError> {
    let path = folder.join(name);
    let failed = |error: io::Error| SecretError { path: path.clone(), error };
    if !is_plain(name) {
        let problem = "the name of a secret may have letters, digits, `-`, `_` and inner dots only";
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, problem)));
    }
    let file = private::directory(folder).map_err(failed)?.join(name);
    match read(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(&file).map_err(failed),
        found => found.map_err(failed),
    }
}

/// Why a secret cannot be used.
#[derive(Debug)]
pub struct SecretError {
    pub path: PathBuf,
    pub error: io::Error,
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use the secret `{}`: {}", self.path.display(), self.error)
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
        .map_err(|error| io::Error::other(format!("the system returned no random bytes: {error}")))?;
    match private::create(path, &secret) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(path),
        made => made.map(|()| secret),
    }
}

fn read(path: &Path) -> io::Result<[u8; 32]> {
    // Do not follow symlinks: one could point to a file whose content an attacker knows.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    private::check_file(path, &file.metadata()?)?;
    let mut bytes = Vec::with_capacity(33);
    file.take(33).read_to_end(&mut bytes)?;
    bytes.try_into().map_err(|_| {
        let problem = "it is not 32 bytes long; restore it, or delete it to create a new one, which cannot open data sealed \
                       with the old one";
        io::Error::new(io::ErrorKind::InvalidData, problem)
    })
}

fn is_plain(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= 64 && !name.starts_with('.') && name.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests;
