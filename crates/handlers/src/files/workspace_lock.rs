//! Serialises changes of the workspace, because concurrent changes could be lost: between calls of this process, and between
//! gateways with the same state directory.
//!
//! Tools cannot open the lock file. A command that may only read could otherwise lock the workspace itself and block
//! every write.

use std::{
    collections::BTreeSet,
    fs::File,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rustix::{
    fs::{CWD, FlockOperation, Mode, OFlags, flock, mkdir, openat},
    io::Errno,
};

use super::{
    Files,
    error::{FileFault, FileReason},
    kernel,
};
use crate::hard_links::{FileNumber, file_number};

/// Held while a call changes the workspace. On drop, it unlocks for other gateways first.
#[derive(Debug)]
pub(super) struct WorkspaceLock {
    _among_gateways: Option<File>,
    _here: ProcessLock,
}

/// Marks the workspace as locked by a call of this process.
#[derive(Debug)]
struct ProcessLock(FileNumber);

impl Files {
    pub(super) fn lock_workspace(&self) -> Result<WorkspaceLock, FileFault> {
        let folder = kernel::metadata(&self.roots.workspace.dir, ".")?;
        let workspace = file_number(&folder);
        let mut tries = MOST_TRIES;
        self.wait(&mut tries, || Ok(taken().insert(workspace)))?;
        let here = ProcessLock(workspace);
        let lock = self.lock_of(workspace).map_err(|error| no_turn(&error))?;
        if let Some(lock) = &lock {
            self.wait(&mut tries, || match flock(lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => Ok(true),
                Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
                Err(error) => Err(no_turn(&error.into())),
            })?;
        }
        Ok(WorkspaceLock { _among_gateways: lock, _here: here })
    }

    fn wait(
        &self,
        tries: &mut usize,
        mut is_ours: impl FnMut() -> Result<bool, FileFault>,
    ) -> Result<(), FileFault> {
        while !is_ours()? {
            self.check_deadline()?;
            let Some(left) = tries.checked_sub(1) else {
                return Err(FileFault::new(
                    FileReason::Io,
                    "other calls keep changing the workspace; try again",
                ));
            };
            *tries = left;
            thread::sleep(BETWEEN_TRIES);
        }
        Ok(())
    }

    /// `None` without a writable state directory: then no other gateway shares it with this process.
    fn lock_of(&self, workspace: FileNumber) -> io::Result<Option<File>> {
        match mkdir(&self.locks, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(Errno::NOENT | Errno::ACCESS | Errno::PERM) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // Opened separately, because a lock belongs to the open file description.
        let path = self.locks.join(format!("{:x}-{:x}", workspace.0, workspace.1));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(CWD, &path, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(Some(file.into())),
            Err(Errno::ACCESS | Errno::PERM) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for ProcessLock {
    fn drop(&mut self) {
        taken().remove(&self.0);
    }
}

fn taken() -> MutexGuard<'static, BTreeSet<FileNumber>> {
    static TAKEN: Mutex<BTreeSet<FileNumber>> = Mutex::new(BTreeSet::new());
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Without the path, which tools must not learn.
fn no_turn(error: &io::Error) -> FileFault {
    FileFault::new(
        FileReason::Io,
        format!("the gateway's state cannot be written: {}; make room or free it", error.kind()),
    )
}

/// Below the shortest timeout of a tool, so the tool sees this message.
const MOST_TRIES: usize = 1_250;
const BETWEEN_TRIES: Duration = Duration::from_millis(2);
