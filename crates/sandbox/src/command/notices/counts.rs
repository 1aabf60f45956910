//! Per-command limits on resources that the kernel does not limit, or only limits for all processes of a user
//! together.
//!
//! Released resources are not seen, so this counts all requests ever made. The limits are far above what programs
//! need and far below what harms the host.

use std::fs;

use rustix::{
    fs::{AtFlags, CWD, FileType, StatxFlags},
    process::Pid,
};

use super::super::CommandLimits;
use crate::{filter::CountedResource, sys::filter::NoticeReply};

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
        // File locks of maximum size take at most a quarter of the memory limit.
        Self { locks: Count::new(limits.memory_bytes / 4 / LOCK_BYTES), waits: Count::new(waits(of_user)) }
    }

    /// Whether one more is allowed, and otherwise why not.
    pub(crate) fn one_more(&mut self, what: CountedResource) -> (NoticeReply, Option<String>) {
        let (count, errno, name) = match what {
            CountedResource::Locks => (&mut self.locks, libc::ENOLCK, "file locks"),
            CountedResource::Waits => (&mut self.waits, libc::ENOSPC, "epoll entries"),
        };
        if count.had < count.most {
            count.had += 1;
            return (NoticeReply::Continue, None);
        }
        (NoticeReply::Refuse { errno }, Some(format!("more than {} {name}", count.most)))
    }
}

impl Count {
    fn new(most: u64) -> Self {
        Self { most, had: 0 }
    }
}

/// Whether a descriptor is a regular file or directory, which `epoll` rejects. Go tries every file it opens and
/// accepts the error, so this must not count. We return that error ourselves, because another file could take the
/// descriptor number before the kernel checks it.
pub(crate) fn is_never_waited_for(process: Pid, descriptor: u64) -> bool {
    // An `int`; the upper half of the argument is undefined.
    let place = format!("/proc/{}/fd/{}", process.as_raw_nonzero(), descriptor & 0xffff_ffff);
    let flags = AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let kind = rustix::fs::statx(CWD, place, flags, StatxFlags::TYPE)
        .map(|about| FileType::from_raw_mode(about.stx_mode.into()));
    matches!(kind, Ok(FileType::RegularFile | FileType::Directory))
}

/// A share of the host's limit per user, such that half remains after as many commands as one caller may run.
fn waits(of_user: Option<u64>) -> u64 {
    of_user.map_or(FEWEST, |all| all / 64).min(MOST_WAITS)
}

/// More than the kernel uses for one.
const LOCK_BYTES: u64 = 256;
const MOST_WAITS: u64 = 1 << 14;
const FEWEST: u64 = 1 << 10;

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn command_gets_a_share_of_its_users_epoll_limit() {
        for (of_user, most) in [(Some(5_490_643), 16_384), (Some(214_748), 3355), (None, 1024)] {
            assert_eq!(waits(of_user), most, "{of_user:?}");
        }
    }

    #[test]
    fn files_and_directories_are_never_waited_for() {
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
