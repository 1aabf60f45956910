//! How much of the machine may the worker use up?

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
        // The soft limit sends a signal that says why; the hard one, a second later, kills without a word.
        limit(Resource::Cpu, self.cpu_seconds, self.cpu_seconds.saturating_add(1))?;
        for resource in NONE {
            limit(resource, 0, 0)?;
        }
        Ok(())
    }
}

/// Keeps the numbers of descriptors small, so that the jail can look at each of them before it is sealed.
pub(crate) fn bound_descriptors() -> io::Result<()> {
    let count = u64::try_from(DESCRIPTORS).map_err(io::Error::other)?;
    limit(Resource::Nofile, count, count)
}

/// A limit already in force that is lower stays: it cannot be raised, and need not be.
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
