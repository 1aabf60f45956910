//! Resource limits of a worker.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limits that vary; the others are zero for every worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) address_space: u64,
    pub(crate) cpu_seconds: u64,
}

impl Limits {
    pub(crate) fn apply(self) -> io::Result<()> {
        limit(Resource::As, self.address_space, self.address_space)?;
        // The soft limit sends SIGXCPU, which names the reason; the hard limit, a second later, sends SIGKILL.
        limit(Resource::Cpu, self.cpu_seconds, self.cpu_seconds.saturating_add(1))?;
        for resource in NONE {
            limit(resource, 0, 0)?;
        }
        Ok(())
    }
}

/// Keeps descriptor numbers small, because the jail checks each of them before it is sealed.
pub(crate) fn bound_descriptors() -> io::Result<()> {
    let count = u64::try_from(DESCRIPTORS).map_err(io::Error::other)?;
    limit(Resource::Nofile, count, count)
}

/// Keeps a lower limit that is already in force: it cannot be raised, and need not be.
fn limit(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let ceiling = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let (current, maximum) = (Some(soft.min(ceiling)), Some(hard.min(ceiling)));
    setrlimit(resource, Rlimit { current, maximum })?;
    Ok(())
}

/// One more than the highest descriptor number between the two phases of the jail.
pub(crate) const DESCRIPTORS: i32 = 64;

const NONE: [Resource; 7] = [
    Resource::Nofile,
    Resource::Fsize,
    Resource::Core,
    Resource::Nproc,
    Resource::Memlock,
    Resource::Msgqueue,
    Resource::Locks,
];
