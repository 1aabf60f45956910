//! Who changes the workspace now? One call at a time, so that no change of another is lost: in this process, and in others that keep
//! their state in the same folder.
//!
//! Nothing is locked that a tool can open. A command that may only read could hold a lock on the workspace itself, and every
//! call that writes would wait for it.

use std::{
    collections::BTreeSet,
    fs::File,
    io,
    os::unix::fs::MetadataExt as _,
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
    error::{Fault, Reason},
    kernel,
};

/// Held while a call changes the workspace. Given back when dropped, to other gateways first.
#[derive(Debug)]
pub(super) struct Turn {
    _among_gateways: Option<File>,
    _here: Taken,
}

/// The workspace is changed by a call of this process.
#[derive(Debug)]
struct Taken(Identity);

/// A folder, by whichever name it was reached.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Files {
    pub(super) fn turn(&self) -> Result<Turn, Fault> {
        let folder = kernel::metadata(&self.roots.workspace.dir, ".")?;
        let workspace = Identity { device: folder.dev(), inode: folder.ino() };
        let mut tries = MOST_TRIES;
        self.wait(&mut tries, || Ok(taken().insert(workspace)))?;
        let here = Taken(workspace);
        let lock = self.lock_of(workspace).map_err(|error| no_turn(&error))?;
        if let Some(lock) = &lock {
            self.wait(&mut tries, || match flock(lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => Ok(true),
                Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
                Err(error) => Err(no_turn(&error.into())),
            })?;
        }
        Ok(Turn { _among_gateways: lock, _here: here })
    }

    fn wait(&self, tries: &mut usize, mut is_ours: impl FnMut() -> Result<bool, Fault>) -> Result<(), Fault> {
        while !is_ours()? {
            self.go_on()?;
            let Some(left) = tries.checked_sub(1) else {
                return Err(Fault::new(Reason::Io, "other calls keep changing the workspace; try again"));
            };
            *tries = left;
            thread::sleep(BETWEEN_TRIES);
        }
        Ok(())
    }

    /// `None` where no state is kept, or not by us: then no other gateway takes turns with this process.
    fn lock_of(&self, workspace: Identity) -> io::Result<Option<File>> {
        match mkdir(&self.turns, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(Errno::NOENT | Errno::ACCESS | Errno::PERM) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // Opened anew: a lock belongs to the opening.
        let path = self.turns.join(format!("{:x}-{:x}", workspace.device, workspace.inode));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(CWD, &path, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(Some(file.into())),
            Err(Errno::ACCESS | Errno::PERM) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        taken().remove(&self.0);
    }
}

fn taken() -> MutexGuard<'static, BTreeSet<Identity>> {
    static TAKEN: Mutex<BTreeSet<Identity>> = Mutex::new(BTreeSet::new());
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Without the place: it is none that a tool may know of.
fn no_turn(error: &io::Error) -> Fault {
    Fault::new(
        Reason::Io,
        format!("the gateway's state cannot be written: {}; make room or free it", error.kind()),
    )
}

/// Less than any tool may take, so that it is told why it waited.
const MOST_TRIES: usize = 1_250;
const BETWEEN_TRIES: Duration = Duration::from_millis(2);
