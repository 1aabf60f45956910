//! Which files of a bind lead to somebody outside?
//!
//! A socket file is reached through a bind for reading as well, and the runtimes' own filters of system calls let it be: whoever
//! listens there would serve a command that has no network. Our own jail makes no such sockets at all.

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

/// Looks through the binds of one container, as far as its names and its time reach.
#[derive(Debug)]
pub(super) struct Search {
    since: Instant,
    deadline: Duration,
    names_left: u32,
    doors: Vec<PathBuf>,
}

impl Search {
    pub(super) fn within(deadline: Duration) -> Self {
        Self { since: Instant::now(), deadline, names_left: MOST_NAMES, doors: Vec::new() }
    }

    /// Everything that was found, to be covered.
    pub(super) fn doors(self) -> Vec<PathBuf> {
        self.doors
    }

    /// Looks through a folder that was opened and has this name.
    pub(super) fn look_through(
        &mut self,
        top: BorrowedFd<'_>,
        real: &Path,
        access: Access,
    ) -> Result<(), SpawnError> {
        let mut waiting = vec![PathBuf::new()];
        while let Some(below) = waiting.pop() {
            let failed = |error: io::Error| unsearched(&real.join(&below), &error.to_string());
            match open_folder(top, &below) {
                Ok(folder) => self.look_at(&folder, real, &below, access, &mut waiting)?,
                // Moved or removed meanwhile; or another mount, of which a bind shows nothing.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {}
                // What cannot be listed may be entered all the same, or opened by its owner inside.
                Err(Errno::ACCESS | Errno::PERM) => self.add(real.join(&below))?,
                Err(error) => return Err(failed(error.into())),
            }
        }
        Ok(())
    }

    fn look_at(
        &mut self,
        folder: &OwnedFd,
        real: &Path,
        below: &Path,
        access: Access,
        waiting: &mut Vec<PathBuf>,
    ) -> Result<(), SpawnError> {
        let failed = |error: io::Error| unsearched(&real.join(below), &error.to_string());
        for entry in fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd())).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            self.count(real)?;
            let below = below.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(below),
                Ok(kind) if is_door(kind, access) => self.add(real.join(below))?,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    fn count(&mut self, real: &Path) -> Result<(), SpawnError> {
        let too_many = || unsearched(real, &format!("there are more than {MOST_NAMES} names"));
        self.names_left = self.names_left.checked_sub(1).ok_or_else(too_many)?;
        if self.names_left.is_multiple_of(BETWEEN_LOOKS_AT_THE_CLOCK) && self.since.elapsed() > self.deadline
        {
            return Err(SpawnError::Late);
        }
        Ok(())
    }

    fn add(&mut self, door: PathBuf) -> Result<(), SpawnError> {
        if door.to_str().is_none_or(|text| text.contains(char::is_control)) {
            return Err(SpawnError::Invalid(format!(
                "`{}` leads to somebody outside and cannot be covered, for a runtime takes names of plain text only; rename or remove it",
                door.to_string_lossy().escape_debug()
            )));
        }
        if self.doors.len() >= MOST_DOORS {
            return Err(SpawnError::Invalid(format!(
                "more than {MOST_DOORS} sockets, named pipes and closed folders would have to be covered, the last of them `{}`; \
                 bind less, or remove some",
                door.display()
            )));
        }
        self.doors.push(door);
        Ok(())
    }
}

/// Whoever listens at a socket answers; whoever reads from a named pipe hears. What may be written to may be heard, too.
fn is_door(kind: FileType, access: Access) -> bool {
    kind.is_socket() || (kind.is_fifo() && access != Access::Write)
}

/// Through no link, and in the same mount: a bind shows nothing of others.
fn open_folder(top: BorrowedFd<'_>, below: &Path) -> Result<OwnedFd, Errno> {
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(top, below, flags, Mode::empty(), resolve)
}

fn unsearched(place: &Path, why: &str) -> SpawnError {
    SpawnError::Invalid(format!(
        "`{}` cannot be searched for sockets, which lead to somebody outside: {why}; bind less",
        place.to_string_lossy().escape_debug()
    ))
}

/// A workspace with the packages of several projects, and a second or two where they were looked at before.
const MOST_NAMES: u32 = 1_000_000;
const MOST_DOORS: usize = 256;
const BETWEEN_LOOKS_AT_THE_CLOCK: u32 = 1_024;

#[cfg(test)]
mod tests {
    use std::os::{fd::AsFd, unix::net::UnixListener};

    use super::*;

    fn search(top: &Path, access: Access, mut search: Search) -> Result<Vec<String>, String> {
        let open = fs::File::open(top).unwrap();
        search.look_through(open.as_fd(), top, access).map_err(|error| error.to_string())?;
        let told = |path: PathBuf| path.strip_prefix(top).unwrap().display().to_string();
        let mut doors: Vec<String> = search.doors().into_iter().map(told).collect();
        doors.sort();
        Ok(doors)
    }

    fn patient() -> Search {
        Search::within(Duration::from_mins(1))
    }

    fn pipe(path: &Path) {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
    }

    #[test]
    fn sockets_are_found_wherever_they_are_and_pipes_where_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        fs::create_dir_all(top.join(".pg/deep")).unwrap();
        fs::write(top.join("plain"), "x").unwrap();
        let _listeners =
            ["s", ".pg/deep/.s.PGSQL.5432"].map(|name| UnixListener::bind(top.join(name)).unwrap());
        pipe(&top.join(".pg/pipe"));
        // A link leads somewhere in the container, where what it names is covered for itself.
        std::os::unix::fs::symlink("s", top.join("link")).unwrap();
        std::os::unix::fs::symlink("/", top.join("everything")).unwrap();
        let sockets = [".pg/deep/.s.PGSQL.5432", "s"].map(str::to_owned);
        assert_eq!(search(top, Access::Write, patient()).unwrap(), sockets);
        let all = [".pg/deep/.s.PGSQL.5432", ".pg/pipe", "s"].map(str::to_owned);
        assert_eq!(search(top, Access::Read, patient()).unwrap(), all);
        assert_eq!(search(top, Access::Execute, patient()).unwrap(), all);
    }

    #[test]
    fn what_cannot_be_searched_or_covered_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        for number in 0..3 {
            fs::write(top.join(number.to_string()), "").unwrap();
        }
        let short = Search { names_left: 2, ..patient() };
        let error = search(top, Access::Read, short).unwrap_err();
        assert!(error.contains("names") && error.contains("bind less"), "{error}");
        let late = Search { names_left: BETWEEN_LOOKS_AT_THE_CLOCK + 1, ..Search::within(Duration::ZERO) };
        assert_eq!(search(top, Access::Read, late).unwrap_err(), SpawnError::Late.to_string());
        for number in 0..=MOST_DOORS {
            pipe(&top.join(format!("pipe{number}")));
        }
        let error = search(top, Access::Read, patient()).unwrap_err();
        assert!(error.contains("more than 256 sockets"), "{error}");
        assert_eq!(search(top, Access::Write, patient()).unwrap(), Vec::<String>::new());
        let _odd = UnixListener::bind(top.join("a\nb")).unwrap();
        let error = search(top, Access::Write, patient()).unwrap_err();
        assert!(error.contains("plain text") && !error.contains('\n'), "{error}");
    }
}
