//! Bounds the calls that run and the calls that wait for a person, in total and per caller. Calls queue for a run slot.

mod slots;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

pub use slots::Slot;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::slots::RunSlots;

use crate::approval::QueueLimit;

/// Limits of running and waiting calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CallLimits {
    pub calls: usize,
    pub calls_per_caller: usize,
    /// Calls that wait for a run slot.
    pub waiting: usize,
    /// How long a call waits for a run slot and a worker.
    pub wait_timeout: Duration,
    /// Calls that wait while a person is asked.
    pub asking: usize,
    pub asking_per_caller: usize,
}

#[derive(Debug)]
pub struct Limiter {
    limits: CallLimits,
    slots: RunSlots,
    asking: Arc<Semaphore>,
    askers: Arc<AskingCallers>,
}

type AskingCallers = Mutex<HashMap<String, usize>>;

/// Permits one call to wait for a person. It is separate from run slots, because people take minutes to answer.
#[derive(Debug)]
pub struct AskingPermit {
    _permit: OwnedSemaphorePermit,
    _caller: AskingSlot,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Busy {
    /// Too many calls wait for a run slot.
    QueueFull { limit: usize },
    /// Too many calls of this caller wait for a run slot.
    OwnQueueFull { own: usize, limit: usize },
    /// No run slot became free in time.
    TooLong { waited: Duration, limit: usize },
    /// The caller's other calls held all of the caller's run slots.
    OwnTooLong { waited: Duration, limit: usize },
    /// Too many calls wait for a person.
    Asking(QueueLimit),
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QueueFull { limit } => {
                write!(f, "too many calls are waiting for a run slot (`limits.waiting` is {limit})")
            }
            Self::OwnQueueFull { own, limit } => write!(
                f,
                "{own} of your calls are waiting for a run slot, and one caller gets half of the free queue \
                 (`limits.waiting` is {limit})"
            ),
            Self::TooLong { waited, limit } => write!(
                f,
                "too many calls run; none ended in the {} s that this one waited (`limits.calls` is {limit})",
                waited.as_secs()
            ),
            Self::OwnTooLong { waited, limit } => write!(
                f,
                "too many of your calls run; none ended in the {} s that this one waited \
                 (`limits.calls_per_caller` is {limit})",
                waited.as_secs()
            ),
            Self::Asking(limit) => limit.fmt(f),
        }
    }
}

impl Limiter {
    pub fn new(limits: CallLimits) -> Self {
        Self {
            slots: RunSlots::new(limits),
            asking: Arc::new(Semaphore::new(limits.asking.clamp(1, Semaphore::MAX_PERMITS))),
            limits,
            askers: Arc::default(),
        }
    }

    /// Waits for a run slot. A call beyond its caller's limit waits behind the calls of that caller only.
    pub async fn enter(&self, caller: &str) -> Result<Slot, Busy> {
        self.slots.enter(caller).await
    }

    pub const fn wait_timeout(&self) -> Duration {
        self.limits.wait_timeout
    }

    /// Refuses at once if the limit is reached. Queueing here would only be another wait without a limit.
    pub fn ask(&self, caller: &str) -> Result<AskingPermit, Busy> {
        let CallLimits { asking, asking_per_caller, .. } = self.limits;
        let full = |limit: fn(u64) -> QueueLimit, most: usize| Busy::Asking(limit(most as u64));
        let place = take_asking_slot(&self.askers, caller, asking_per_caller)
            .ok_or_else(|| full(QueueLimit::OfCaller, asking_per_caller))?;
        let permit = Arc::clone(&self.asking).try_acquire_owned();
        let permit = permit.map_err(|_| full(QueueLimit::InAll, asking))?;
        Ok(AskingPermit { _permit: permit, _caller: place })
    }
}

/// `None` if the caller already has `most` waiting calls.
fn take_asking_slot(callers: &Arc<AskingCallers>, caller: &str, most: usize) -> Option<AskingSlot> {
    let mut held = callers.lock().unwrap_or_else(PoisonError::into_inner);
    let count = held.entry(caller.to_owned()).or_insert(0);
    if *count >= most {
        return None;
    }
    *count += 1;
    Some(AskingSlot { callers: Arc::clone(callers), caller: caller.to_owned() })
}

#[derive(Debug)]
struct AskingSlot {
    callers: Arc<AskingCallers>,
    caller: String,
}

impl Drop for AskingSlot {
    fn drop(&mut self) {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = callers.get_mut(&self.caller) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                callers.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_wait_for_a_person_are_bounded_and_hold_no_slot() {
        let wait_timeout = Duration::from_mins(1);
        let limits = CallLimits {
            calls: 1,
            calls_per_caller: 1,
            waiting: 0,
            wait_timeout,
            asking: 3,
            asking_per_caller: 2,
        };
        let limiter = Limiter::new(limits);
        let held = [limiter.ask("ann").unwrap(), limiter.ask("ann").unwrap()];
        assert_eq!(limiter.ask("ann").unwrap_err(), Busy::Asking(QueueLimit::OfCaller(2)));
        let _bob = limiter.ask("bob").unwrap();
        assert_eq!(limiter.ask("cid").unwrap_err(), Busy::Asking(QueueLimit::InAll(3)));
        assert_eq!(limiter.slots.counts(), (0, 0, 0));
        drop(held);
        assert!(limiter.ask("cid").is_ok());
        assert_eq!(limiter.askers.lock().unwrap().keys().collect::<Vec<_>>(), ["bob"]);
    }
}
