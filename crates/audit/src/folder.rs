//! Which files make up a journal, and how are they opened without being led astray?

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

/// Opens a file for reading that is neither a link, nor a pipe that would make us wait, nor a device.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(FLAGS.bits().cast_signed()).open(path)?;
    regular(file)
}

/// Opens a journal file for writing, as [`open_regular`] does; makes it if need be.
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

/// Makes the folder for this user alone, or checks that nobody else may change the one that is there.
pub(crate) fn prepare(folder: &Path) -> Result<(), JournalError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .and_then(|()| folder.metadata())
        .map_err(|error| JournalError::io("make the journal folder", folder, error))
        .and_then(|meta| {
            let shown = folder.display();
            if meta.uid() != geteuid().as_raw() || meta.mode() & OTHERS_MAY_WRITE != 0 {
                return Err(JournalError::untrusted(format!(
                    "others may write to the folder `{shown}` (make it belong to the gateway's user, `chmod go-w`)"
                )));
            }
            Ok(())
        })
}

/// Held as long as the journal is open for writing; the kernel lets go of it when the process dies.
pub(crate) fn lock(folder: &Path) -> Result<File, JournalError> {
    // Somebody may just be asking whether there is a writer: see `has_writer`.
    try_lock(&folder.join(LOCK), LOCK_TRIES)?
        .ok_or_else(|| JournalError::InUse { folder: folder.display().to_string() })
}

/// One process at a time adds to the list of journals; it holds this for as long as that takes.
pub(crate) fn lock_list(beside: &Path) -> Result<File, JournalError> {
    let path = beside.join(LIST_LOCK);
    try_lock(&path, LIST_LOCK_TRIES)?
        .ok_or_else(|| JournalError::io("lock", &path, io::ErrorKind::WouldBlock.into()))
}

/// None when somebody else had it all the time.
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

/// Whether somebody is writing. Without a lock file nobody is.
pub(crate) fn has_writer(folder: &Path) -> bool {
    open_regular(&folder.join(LOCK))
        .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
}

/// Names of the day files, oldest first, and of other files that end like one.
pub(crate) fn day_files(folder: &Path) -> Result<(Vec<String>, Vec<String>), JournalError> {
    let mut names: Vec<String> = names(folder)?.into_iter().filter(|name| name.ends_with(ENDING)).collect();
    names.sort_unstable();
    Ok(names.into_iter().partition(|name| day_of(name).is_some()))
}

/// The files of lines that were set aside as number `after` + 1 or later.
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

/// Writes a new file of the journal that is on disk, name and all, when this returns.
pub(crate) fn write_new(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = folder.join(name);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    sync_folder(folder)
}

/// Puts a file in the place of another one; a crash leaves the old or the new one, never half of it.
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
    let fail = |error| JournalError::io("list the journal folder", folder, error);
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
/// Half a minute: many may start at once on a slow disk.
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
