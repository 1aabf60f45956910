//! How many does a command have of what the kernel bounds for nobody, or for all of a user's processes together?
//!
//! What is given back is not seen, so that this counts what was ever asked for. The numbers are far beyond what programs
//! need, and far below what harms the host.

use std::fs;

use rustix::{
    fs::{AtFlags, CWD, FileType, StatxFlags},
    process::Pid,
};

use super::super::CommandLimits;
use crate::{filter::Counted, sys::filter::Answer};

#[derive(Debug)]
pub(crate) struct Counts {
    locks: Count,
    waits: Count,
}

#[derive(Debug)]
struct Count {
    most: u64,
    had: u64,
}

impl Counts {
    pub(crate) fn of(limits: &CommandLimits) -> Self {
        let of_user = fs::read_to_string("/proc/sys/fs/epoll/max_user_watches");
        let of_user = of_user.ok().and_then(|most| most.trim().parse().ok());
        // Locks, taken at their largest, are a quarter of the memory.
        Self { locks: Count::new(limits.memory_bytes / 4 / LOCK_BYTES), waits: Count::new(waits(of_user)) }
    }

    /// Whether there may be one more, and if not, why.
    pub(crate) fn one_more(&mut self, what: Counted) -> (Answer, Option<String>) {
        let (count, errno, name) = match what {
            Counted::Locks => (&mut self.locks, libc::ENOLCK, "locks of files"),
            Counted::Waits => (&mut self.waits, libc::ENOSPC, "descriptors to wait for"),
        };
        if count.had < count.most {
            count.had += 1;
            return (Answer::Continue, None);
        }
        (Answer::Refuse { errno }, Some(format!("more than {} {name}", count.most)))
    }
}

impl Count {
    fn new(most: u64) -> Self {
        Self { most, had: 0 }
    }
}

/// Whether a descriptor is of a file or a folder, for which nobody waits. Go tries it with every file that it opens, and takes
/// the kernel's no, so that it must not count; and the same no is to be given here, lest another descriptor takes its number
/// before the kernel looks.
pub(crate) fn is_never_waited_for(process: Pid, descriptor: u64) -> bool {
    // An `int`; the upper half of the argument is anything.
    let place = format!("/proc/{}/fd/{}", process.as_raw_nonzero(), descriptor & 0xffff_ffff);
    let flags = AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let kind = rustix::fs::statx(CWD, place, flags, StatxFlags::TYPE)
        .map(|about| FileType::from_raw_mode(about.stx_mode.into()));
    matches!(kind, Ok(FileType::RegularFile | FileType::Directory))
}

/// Of those that the host gives to all processes of a user, so that half are left by as many commands as one caller may have.
fn waits(of_user: Option<u64>) -> u64 {
    of_user.map_or(FEWEST, |all| all / 64).min(MOST_WAITS)
}

/// More than the kernel takes for one.
const LOCK_BYTES: u64 = 256;
const MOST_WAITS: u64 = 1 << 14;
const FEWEST: u64 = 1 << 10;

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_command_may_wait_for_a_part_of_what_its_user_may() {
        for (of_user, most) in [(Some(5_490_643), 16_384), (Some(214_748), 3355), (None, 1024)] {
            assert_eq!(waits(of_user), most, "{of_user:?}");
        }
    }

    #[test]
    fn nobody_waits_for_files_and_folders() {
        let own = rustix::process::getpid();
        let never = |file: &dyn AsRawFd| {
            is_never_waited_for(own, u64::MAX << 32 | u64::from(file.as_raw_fd().cast_unsigned()))
        };
        let folder = tempfile::tempdir().unwrap();
        assert!(never(&fs::File::create(folder.path().join("file")).unwrap()));
        assert!(never(&fs::File::open(folder.path()).unwrap()));
        let (source, _sink) = std::io::pipe().unwrap();
        assert!(!never(&source));
        assert!(!is_never_waited_for(own, 0xffff_ffff), "not open");
    }
}
