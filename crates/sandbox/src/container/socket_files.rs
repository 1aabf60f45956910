//! Finds socket files and named pipes in binds.
//!
//! A socket file can be connected to even through a read-only bind, and the runtimes' seccomp filters allow it: a
//! server on the host would then serve a command without network. In our own jail commands cannot create such
//! sockets at all.

use std::{
    fs::{self, FileType},
    io,
    os::{
        fd::{AsRawFd, BorrowedFd, OwnedFd},
        unix::fs::FileTypeExt,
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags},
    io::Errno,
};

use crate::{Access, SpawnError};

/// Searches the binds of one container, within limits on names and time.
#[derive(Debug)]
pub(super) struct SocketSearch {
    since: Instant,
    deadline: Duration,
    names_left: u32,
    found: Vec<PathBuf>,
}

impl SocketSearch {
    pub(super) fn within(deadline: Duration) -> Self {
        Self { since: Instant::now(), deadline, names_left: MAX_NAMES, found: Vec::new() }
    }

    /// Everything found, to be masked.
    pub(super) fn found(self) -> Vec<PathBuf> {
        self.found
    }

    /// Searches an open directory with this path.
    pub(super) fn search_dir(
        &mut self,
        top: BorrowedFd<'_>,
        real: &Path,
        access: Access,
    ) -> Result<(), SpawnError> {
        let mut waiting = vec![PathBuf::new()];
        while let Some(below) = waiting.pop() {
            let failed = |error: io::Error| search_failed(&real.join(&below), &error.to_string());
            match open_dir(top, &below) {
                Ok(dir) => self.search_entries(&dir, real, &below, access, &mut waiting)?,
                // Moved or removed meanwhile, or another mount, which a bind does not show.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {}
                // A directory that cannot be listed may still be entered, or opened by its owner inside.
                Err(Errno::ACCESS | Errno::PERM) => self.add(real.join(&below))?,
                Err(error) => return Err(failed(error.into())),
            }
        }
        Ok(())
    }

    fn search_entries(
        &mut self,
        dir: &OwnedFd,
        real: &Path,
        below: &Path,
        access: Access,
        waiting: &mut Vec<PathBuf>,
    ) -> Result<(), SpawnError> {
        let failed = |error: io::Error| search_failed(&real.join(below), &error.to_string());
        for entry in fs::read_dir(format!("/proc/self/fd/{}", dir.as_raw_fd())).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            self.count(real)?;
            let below = below.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(below),
                Ok(kind) if is_host_channel(kind, access) => self.add(real.join(below))?,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    fn count(&mut self, real: &Path) -> Result<(), SpawnError> {
        let too_many = || search_failed(real, &format!("it has more than {MAX_NAMES} entries"));
        self.names_left = self.names_left.checked_sub(1).ok_or_else(too_many)?;
        if self.names_left.is_multiple_of(NAMES_BETWEEN_CLOCK_CHECKS) && self.since.elapsed() > self.deadline
        {
            return Err(SpawnError::Late);
        }
        Ok(())
    }

    fn add(&mut self, path: PathBuf) -> Result<(), SpawnError> {
        if path.to_str().is_none_or(|text| text.contains(char::is_control)) {
            return Err(SpawnError::Invalid(format!(
                "`{}` reaches a process on the host and cannot be masked, because container runtimes accept plain-text paths only; rename or remove it",
                path.to_string_lossy().escape_debug()
            )));
        }
        if self.found.len() >= MAX_MASKED {
            return Err(SpawnError::Invalid(format!(
                "more than {MAX_MASKED} sockets, named pipes and unreadable directories would have to be masked, the last of them `{}`; \
                 bind less, or remove some",
                path.display()
            )));
        }
        self.found.push(path);
        Ok(())
    }
}

/// A process on the host answers at a socket and reads from a named pipe. A writable bind may contain pipes,
/// because its content is shared with the host anyway.
fn is_host_channel(kind: FileType, access: Access) -> bool {
    kind.is_socket() || (kind.is_fifo() && access != Access::Write)
}

/// Follows no symlinks and stays in the same mount, because a bind shows no other mounts.
fn open_dir(top: BorrowedFd<'_>, below: &Path) -> Result<OwnedFd, Errno> {
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(top, below, flags, Mode::empty(), resolve)
}

fn search_failed(place: &Path, why: &str) -> SpawnError {
    SpawnError::Invalid(format!(
        "cannot search `{}` for sockets that reach processes on the host: {why}; bind less",
        place.to_string_lossy().escape_debug()
    ))
}

/// Enough for a workspace with the packages of several projects; takes a second or two with warm caches.
const MAX_NAMES: u32 = 1_000_000;
const MAX_MASKED: usize = 256;
const NAMES_BETWEEN_CLOCK_CHECKS: u32 = 1_024;

#[cfg(test)]
mod tests {
    use std::os::{fd::AsFd, unix::net::UnixListener};

    use super::*;

    fn search(top: &Path, access: Access, mut search: SocketSearch) -> Result<Vec<String>, String> {
        let open = fs::File::open(top).unwrap();
        search.search_dir(open.as_fd(), top, access).map_err(|error| error.to_string())?;
        let relative = |path: PathBuf| path.strip_prefix(top).unwrap().display().to_string();
        let mut found: Vec<String> = search.found().into_iter().map(relative).collect();
        found.sort();
        Ok(found)
    }

    fn patient() -> SocketSearch {
        SocketSearch::within(Duration::from_mins(1))
    }

    fn pipe(path: &Path) {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
    }

    #[test]
    fn sockets_are_found_in_all_binds_and_pipes_in_read_only_binds() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        fs::create_dir_all(top.join(".pg/deep")).unwrap();
        fs::write(top.join("plain"), "x").unwrap();
        let _listeners =
            ["s", ".pg/deep/.s.PGSQL.5432"].map(|name| UnixListener::bind(top.join(name)).unwrap());
        pipe(&top.join(".pg/pipe"));
        // A symlink resolves inside the container, where its target is masked separately.
        std::os::unix::fs::symlink("s", top.join("link")).unwrap();
        std::os::unix::fs::symlink("/", top.join("everything")).unwrap();
        let sockets = [".pg/deep/.s.PGSQL.5432", "s"].map(str::to_owned);
        assert_eq!(search(top, Access::Write, patient()).unwrap(), sockets);
        let all = [".pg/deep/.s.PGSQL.5432", ".pg/pipe", "s"].map(str::to_owned);
        assert_eq!(search(top, Access::Read, patient()).unwrap(), all);
        assert_eq!(search(top, Access::Execute, patient()).unwrap(), all);
    }

    #[test]
    fn paths_that_cannot_be_searched_or_masked_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        for number in 0..3 {
            fs::write(top.join(number.to_string()), "").unwrap();
        }
        let short = SocketSearch { names_left: 2, ..patient() };
        let error = search(top, Access::Read, short).unwrap_err();
        assert!(error.contains("entries") && error.contains("bind less"), "{error}");
        let late = SocketSearch {
            names_left: NAMES_BETWEEN_CLOCK_CHECKS + 1,
            ..SocketSearch::within(Duration::ZERO)
        };
        assert_eq!(search(top, Access::Read, late).unwrap_err(), SpawnError::Late.to_string());
        for number in 0..=MAX_MASKED {
            pipe(&top.join(format!("pipe{number}")));
        }
        let error = search(top, Access::Read, patient()).unwrap_err();
        assert!(error.contains("more than 256 sockets"), "{error}");
        assert_eq!(search(top, Access::Write, patient()).unwrap(), Vec::<String>::new());
        let _odd = UnixListener::bind(top.join("a\nb")).unwrap();
        let error = search(top, Access::Write, patient()).unwrap_err();
        assert!(error.contains("plain-text") && !error.contains('\n'), "{error}");
    }
}
