//! The gateway's side: jails created ahead, each for one command.
//!
//! A prepared jail is a supervisor, namespaces and the mounts that every command sees. It holds nothing of a tool,
//! a caller or the workspace. It is removed from the list before it is used, and never reused.

use std::{
    io,
    os::fd::OwnedFd,
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::{groundwork::Groundwork, passing};

/// Waiting prepared jails, and the number of running commands.
#[derive(Debug)]
pub(crate) struct PreparedJails {
    /// Maximum of waiting jails; 0 disables preparation.
    most: usize,
    /// No preparation with this many running commands: every CPU is busy.
    busy: usize,
    state: Mutex<PreparedState>,
}

#[derive(Debug, Default)]
struct PreparedState {
    /// Oldest first.
    waiting: Vec<PreparedJail>,
    running: usize,
}

#[derive(Debug)]
struct PreparedJail {
    groundwork: Groundwork,
    control: UnixStream,
    since: Instant,
}

impl PreparedJail {
    /// Nothing is sent to an idle jail, so it only becomes readable if it failed, became stale or died.
    fn is_silent(&self) -> bool {
        let mut polled = [PollFd::new(&self.control, PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&AT_ONCE)).is_ok_and(|ready| ready == 0)
    }
}

impl PreparedJails {
    pub(crate) fn up_to(most: usize) -> Self {
        let busy = thread::available_parallelism().map_or(1, usize::from);
        Self { most, busy, state: Mutex::default() }
    }

    /// Takes a jail for one command.
    pub(crate) fn take(&self, groundwork: &Groundwork) -> Option<UnixStream> {
        let mut state = self.lock();
        state.waiting.retain(PreparedJail::is_silent);
        let index = state.waiting.iter().rposition(|jail| jail.groundwork == *groundwork)?;
        Some(state.waiting.remove(index).control)
    }

    /// Whether another jail should be prepared for this groundwork.
    pub(crate) fn wants(&self, groundwork: &Groundwork) -> bool {
        let state = self.lock();
        let alike = state.waiting.iter().filter(|jail| jail.groundwork == *groundwork).count();
        alike < self.most.min(MOST_ALIKE) && state.running < self.busy
    }

    /// Starts to prepare a jail. Returns the supervisor's end for the jailer. Drops the oldest jail if there are
    /// too many.
    pub(crate) fn prepare(&self, groundwork: Groundwork) -> io::Result<OwnedFd> {
        let (ours, theirs) = UnixStream::pair()?;
        passing::send(&ours, &groundwork.to_frame()?, &[])?;
        ours.set_nonblocking(true)?;
        let mut state = self.lock();
        state.waiting.retain(PreparedJail::is_silent);
        state.waiting.push(PreparedJail { groundwork, control: ours, since: Instant::now() });
        let beyond = state.waiting.len().saturating_sub(self.most);
        state.waiting.drain(..beyond);
        Ok(theirs.into())
    }

    /// Ends jails that were not used for a while. Returns whether any is left.
    pub(crate) fn expire(&self) -> bool {
        let mut state = self.lock();
        state.waiting.retain(|jail| jail.is_silent() && jail.since.elapsed() < LONGEST_WAIT);
        !state.waiting.is_empty()
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, PreparedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts one running command until dropped.
#[derive(Debug)]
pub(crate) struct RunningMark(Arc<PreparedJails>);

impl RunningMark {
    pub(crate) fn new(jails: &Arc<PreparedJails>) -> Self {
        jails.lock().running += 1;
        Self(Arc::clone(jails))
    }
}

impl Drop for RunningMark {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.running = state.running.saturating_sub(1);
    }
}

/// One for the next command, and one for a command that arrives during the next preparation.
const MOST_ALIKE: usize = 2;
const LONGEST_WAIT: Duration = Duration::from_mins(5);
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CommandLimits, Namespaces, Network};

    fn groundwork(memory_bytes: u64) -> Groundwork {
        let limits =
            CommandLimits { memory_bytes, cpu_seconds: 1, processes: 1, open_files: 1, file_bytes: 1 };
        Groundwork { network: Network::None, limits, tmp_bytes: 1, namespaces: Namespaces::Enter }
    }

    #[test]
    fn jail_is_taken_once_and_only_for_equal_groundwork() {
        let jails = PreparedJails::up_to(4);
        let _supervisor = jails.prepare(groundwork(1)).unwrap();
        assert!(jails.take(&groundwork(2)).is_none());
        assert!(jails.take(&groundwork(1)).is_some());
        assert!(jails.take(&groundwork(1)).is_none());
    }

    #[test]
    fn prepared_jails_are_bounded_and_the_oldest_is_dropped() {
        let jails = PreparedJails::up_to(3);
        let supervisors: Vec<_> = (0..10).map(|kind| jails.prepare(groundwork(kind)).unwrap()).collect();
        assert_eq!(jails.count(), 3);
        assert!(jails.take(&groundwork(6)).is_none());
        assert!(jails.take(&groundwork(7)).is_some());
        drop(supervisors);
    }

    #[test]
    fn jail_that_reported_or_died_is_never_taken() {
        let jails = PreparedJails::up_to(4);
        let dead = jails.prepare(groundwork(1)).unwrap();
        let stale = jails.prepare(groundwork(1)).unwrap();
        drop(dead);
        passing::send(&UnixStream::from(stale.try_clone().unwrap()), &[0], &[]).unwrap();
        assert!(jails.take(&groundwork(1)).is_none());
        assert_eq!(jails.count(), 0);
        drop(stale);
    }

    #[test]
    fn nothing_is_prepared_while_every_cpu_is_busy() {
        let jails = Arc::new(PreparedJails { busy: 2, ..PreparedJails::up_to(4) });
        assert!(jails.wants(&groundwork(1)));
        let one = RunningMark::new(&jails);
        assert!(jails.wants(&groundwork(1)));
        let two = RunningMark::new(&jails);
        assert!(!jails.wants(&groundwork(1)));
        drop((one, two));
        let supervisors = [jails.prepare(groundwork(1)).unwrap(), jails.prepare(groundwork(1)).unwrap()];
        assert!(!jails.wants(&groundwork(1)), "two of a kind are enough");
        assert!(jails.wants(&groundwork(2)));
        drop(supervisors);
        assert!(!PreparedJails::up_to(0).wants(&groundwork(1)), "0 turns preparing off");
    }
}
