//! The files of a journal, and how they are opened safely.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, OFlags, flock},
    process::geteuid,
};

use crate::{JournalError, stamp::Stamp};

/// Opens a regular file for reading. Rejects symlinks, pipes (which would block) and devices.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(FLAGS.bits().cast_signed()).open(path)?;
    regular(file)
}

/// Opens a journal file for writing like [`open_regular`], and creates it if needed.
pub(crate) fn open_for_writing(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = regular(options.custom_flags(FLAGS.bits().cast_signed()).open(path)?)?;
    if file.metadata()?.mode() & OTHERS_MAY_WRITE != 0 {
        let problem = format!("others may write to it (`chmod go-w {}`)", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    Ok(file)
}

/// Creates the directory for this user only, or checks that no other user may change an existing one.
pub(crate) fn prepare(folder: &Path) -> Result<(), JournalError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .and_then(|()| folder.metadata())
        .map_err(|error| JournalError::io("create the journal directory", folder, error))
        .and_then(|meta| {
            let shown = folder.display();
            if meta.uid() != geteuid().as_raw() || meta.mode() & OTHERS_MAY_WRITE != 0 {
                return Err(JournalError::untrusted(format!(
                    "others may write to the directory `{shown}` (`chown` it to the gateway's user, and `chmod go-w`)"
                )));
            }
            Ok(())
        })
}

/// The lock of the writer. The kernel releases it when the process dies.
pub(crate) fn lock(folder: &Path) -> Result<File, JournalError> {
    // A reader may hold the lock for a moment in `has_writer`, so try again.
    try_lock(&folder.join(LOCK), LOCK_TRIES)?
        .ok_or_else(|| JournalError::InUse { folder: folder.display().to_string() })
}

/// The lock of the list of journals, held while a process appends to it.
pub(crate) fn lock_list(beside: &Path) -> Result<File, JournalError> {
    let path = beside.join(LIST_LOCK);
    try_lock(&path, LIST_LOCK_TRIES)?
        .ok_or_else(|| JournalError::io("lock", &path, io::ErrorKind::WouldBlock.into()))
}

/// `None` if another process held the lock all the time.
fn try_lock(path: &Path, tries: u32) -> Result<Option<File>, JournalError> {
    let file = open_for_writing(path).map_err(|error| JournalError::io("open", path, error))?;
    for _ in 0..tries {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            Err(error) => return Err(JournalError::io("lock", path, error.into())),
        }
    }
    Ok(None)
}

/// Whether a process is writing the journal. Without a lock file there is none.
pub(crate) fn has_writer(folder: &Path) -> bool {
    open_regular(&folder.join(LOCK))
        .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
}

/// Names of the day files, oldest first, and of other files with the same ending.
pub(crate) fn day_files(folder: &Path) -> Result<(Vec<String>, Vec<String>), JournalError> {
    let mut names: Vec<String> = names(folder)?.into_iter().filter(|name| name.ends_with(ENDING)).collect();
    names.sort_unstable();
    Ok(names.into_iter().partition(|name| day_of(name).is_some()))
}

/// The files with lines that were set aside as number `after` + 1 or later.
pub(crate) fn torn_files(folder: &Path, after: u64) -> Result<Vec<String>, JournalError> {
    let later = |name: &String| {
        let number = name.strip_prefix("torn-").and_then(|rest| rest.split(['-', '.']).next());
        number.and_then(|number| number.parse::<u64>().ok()).is_some_and(|number| number > after)
    };
    let mut names: Vec<String> = names(folder)?.into_iter().filter(later).collect();
    names.sort_unstable();
    Ok(names)
}

/// The day of a file named `2026-11-16.jsonl`.
pub(crate) fn day_of(name: &str) -> Option<Stamp> {
    Stamp::of_day(name.strip_suffix(ENDING)?)
}

pub(crate) fn file_of(stamp: Stamp) -> String {
    format!("{}{ENDING}", stamp.day_text())
}

/// Writes a new file of the journal. File and name are on disk when this returns.
pub(crate) fn write_new(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = folder.join(name);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    sync_folder(folder)
}

/// Replaces a file atomically: after a crash, either the old or the new one exists.
pub(crate) fn replace(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let draft: PathBuf = folder.join(format!("{name}.new"));
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&draft, folder.join(name))?;
    sync_folder(folder)
}

pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

pub(crate) fn names(folder: &Path) -> Result<Vec<String>, JournalError> {
    let fail = |error| JournalError::io("list the journal directory", folder, error);
    let mut names = Vec::new();
    for item in folder.read_dir().map_err(fail)? {
        names.push(item.map_err(fail)?.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

const OTHERS_MAY_WRITE: u32 = 0o022;
const FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const LOCK: &str = "lock";
const LOCK_TRIES: u32 = 10;
const LIST_LOCK: &str = "journals.lock";
/// Half a minute, because many processes may start at once on a slow disk.
const LIST_LOCK_TRIES: u32 = 1500;
const LOCK_PAUSE: Duration = Duration::from_millis(20);
const ENDING: &str = ".jsonl";

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn journal_file_that_others_can_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("2026-01-01.jsonl");
        assert!(open_for_writing(&file).is_ok());
        for mode in [0o620, 0o602, 0o666] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let error = open_for_writing(&file).unwrap_err();
            assert!(error.to_string().contains("chmod go-w"), "{mode:o}: {error}");
        }
    }
}
