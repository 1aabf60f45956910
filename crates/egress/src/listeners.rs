//! The sockets on which gateways of one workspace accept connections. Requests must never reach them.
//!
//! A tool that calls its own gateway would act as another caller. Commands such as `toolgate call` run tools in
//! separate processes, so each gateway publishes its addresses in a shared directory. The gateway keeps its file
//! locked. The kernel releases the lock when the process ends, so an unlocked file is stale.

use std::{
    fmt,
    fs::{self, File, TryLockError},
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io::{self, Read as _, Write as _},
    net::{IpAddr, SocketAddr, UdpSocket},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use crate::address::reached_forms;

/// The listeners of all gateways of one workspace. Cheap to clone; clones share what this process registers.
#[derive(Clone)]
pub struct Listeners(Arc<ListenerRegistry>);

struct ListenerRegistry {
    /// `None`: only the listeners of this process are known.
    dir: Option<PathBuf>,
    own: Mutex<Vec<Registration>>,
}

/// Kept until the process ends: a request that is checked now may connect after the listener was closed.
struct Registration {
    address: SocketAddr,
    /// Holds the lock on the published file.
    _published: Option<File>,
}

impl Listeners {
    /// Knows the listeners that gateways published in `dir`. The directory need not exist.
    pub fn published_in(dir: PathBuf) -> Self {
        Self(Arc::new(ListenerRegistry { dir: Some(dir), own: Mutex::default() }))
    }

    /// Knows the listeners of this process only. For programs without a state directory, and for tests.
    pub fn of_this_process() -> Self {
        Self(Arc::new(ListenerRegistry { dir: None, own: Mutex::default() }))
    }

    /// Publishes the address of a bound socket. Call it before the socket listens.
    pub fn register(&self, address: SocketAddr) -> io::Result<()> {
        let published = self.0.dir.as_deref().map(|dir| publish(dir, address)).transpose();
        let published = published.map_err(|error| {
            let message = format!("cannot publish the listener address for other processes: {error}");
            io::Error::new(error.kind(), message)
        })?;
        let registration = Registration { address, _published: published };
        self.0.own.lock().unwrap_or_else(PoisonError::into_inner).push(registration);
        Ok(())
    }

    /// Whether a connection to `address` reaches one of the listeners. If the directory cannot be read, every address
    /// of this host counts as one.
    pub(crate) fn accept_at(&self, address: SocketAddr) -> bool {
        let mut here = reached_forms(address.ip()).filter(|form| belongs_to_this_host(*form)).peekable();
        if here.peek().is_none() {
            return false;
        }
        let Ok(listeners) = self.all() else { return true };
        here.any(|form| listeners.iter().any(|listener| answers(*listener, form, address.port())))
    }

    fn all(&self) -> io::Result<Vec<SocketAddr>> {
        let own = self.0.own.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<SocketAddr> = own.iter().map(|registration| registration.address).collect();
        drop(own);
        if let Some(dir) = &self.0.dir {
            all.extend(published_addresses(dir)?);
        }
        Ok(all)
    }
}

/// A listener on `0.0.0.0` or `[::]` accepts connections to every address of this host.
fn answers(listener: SocketAddr, form: IpAddr, port: u16) -> bool {
    let address = listener.ip().to_canonical();
    listener.port() == port && (address.is_unspecified() || address == form)
}

/// The kernel binds a socket only to an address of this host. Any other failure counts as yes, because it does not
/// prove the opposite.
fn belongs_to_this_host(address: IpAddr) -> bool {
    !matches!(UdpSocket::bind((address, 0)), Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable)
}

/// Writes and locks the file before it gets its final name, so readers see only complete and locked files.
fn publish(dir: &Path, address: SocketAddr) -> io::Result<File> {
    fs::create_dir_all(dir)?;
    // Use a fresh name every time: a reader that removes a stale file must not remove a new one.
    let number = RandomState::new().build_hasher().finish();
    let name = format!("{}-{number:016x}", std::process::id());
    let unfinished = dir.join(format!("{name}{UNFINISHED}"));
    let mut file = File::create_new(&unfinished)?;
    file.lock()?;
    file.write_all(address.to_string().as_bytes())?;
    fs::rename(&unfinished, dir.join(name))?;
    Ok(file)
}

fn published_addresses(dir: &Path) -> io::Result<Vec<SocketAddr>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut addresses = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none() {
            addresses.extend(published_address(&path)?);
        }
    }
    Ok(addresses)
}

/// `None` for a file whose gateway has ended.
fn published_address(path: &Path) -> io::Result<Option<SocketAddr>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => {
            // If it cannot be removed, the next reader finds it stale again.
            let _ = fs::remove_file(path);
            return Ok(None);
        }
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    text.parse().map(Some).map_err(io::Error::other)
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners").field("dir", &self.0.dir).finish_non_exhaustive()
    }
}

/// Ends the name of a file that is not locked yet.
const UNFINISHED: &str = ".new";

#[cfg(test)]
mod tests;
