//! How many calls run at once, and how many wait for a person? Bounded in all and per caller, with a bounded queue before
//! the running ones.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::approval::QueueLimit;

/// The numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CallLimits {
    pub calls: usize,
    pub calls_per_caller: usize,
    pub waiting: usize,
    /// Calls that wait while a person is asked.
    pub asking: usize,
    pub asking_per_caller: usize,
}

#[derive(Debug)]
pub struct Limiter {
    limits: CallLimits,
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
    callers: Arc<Callers>,
    asking: Arc<Semaphore>,
    askers: Arc<Callers>,
}

type Callers = Mutex<HashMap<String, usize>>;

/// A place among the running calls, given back when dropped.
#[derive(Debug)]
pub struct Slot {
    /// In the queue, for as long as other calls took.
    pub has_waited: bool,
    _permit: OwnedSemaphorePermit,
    _caller: CallerPlace,
}

/// A place among the calls that wait for a person. It is none among the running ones: people think for minutes.
#[derive(Debug)]
pub struct Asking {
    _permit: OwnedSemaphorePermit,
    _caller: CallerPlace,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Busy {
    Caller,
    Gateway,
    /// It stood in the queue for as long as one may.
    TooLong,
    /// Too many calls wait for a person.
    Asking(QueueLimit),
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Asking(limit) => return limit.fmt(f),
            Self::Caller => "too many of your calls are running",
            Self::Gateway => "too many calls are running and waiting",
            Self::TooLong => "too many calls are running; none of them ended while this one waited",
        })
    }
}

impl Limiter {
    pub fn new(limits: CallLimits) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(limits.calls.clamp(1, Semaphore::MAX_PERMITS))),
            asking: Arc::new(Semaphore::new(limits.asking.clamp(1, Semaphore::MAX_PERMITS))),
            limits,
            waiting: AtomicUsize::new(0),
            callers: Arc::default(),
            askers: Arc::default(),
        }
    }

    /// A caller's own limit refuses at once, so that nobody fills the queue for the others. Nobody stands in it for ever.
    pub async fn enter(&self, caller: &str) -> Result<Slot, Busy> {
        let place = place_in(&self.callers, caller, self.limits.calls_per_caller).ok_or(Busy::Caller)?;
        if let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned() {
            return Ok(Slot { has_waited: false, _permit: permit, _caller: place });
        }
        let _queued = self.queue()?;
        let turn = timeout(LONGEST_WAIT, Arc::clone(&self.slots).acquire_owned());
        let permit = turn.await.map_err(|_| Busy::TooLong)?.map_err(|_| Busy::Gateway)?;
        Ok(Slot { has_waited: true, _permit: permit, _caller: place })
    }

    /// Refused at once where there is no place: who waits to be let wait would be one who waits.
    pub fn ask(&self, caller: &str) -> Result<Asking, Busy> {
        let CallLimits { asking, asking_per_caller, .. } = self.limits;
        let full = |limit: fn(u64) -> QueueLimit, most: usize| Busy::Asking(limit(most as u64));
        let place = place_in(&self.askers, caller, asking_per_caller)
            .ok_or_else(|| full(QueueLimit::OfCaller, asking_per_caller))?;
        let permit = Arc::clone(&self.asking).try_acquire_owned();
        let permit = permit.map_err(|_| full(QueueLimit::InAll, asking))?;
        Ok(Asking { _permit: permit, _caller: place })
    }

    fn queue(&self) -> Result<Queued<'_>, Busy> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.limits.waiting {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Busy::Gateway);
        }
        Ok(Queued(&self.waiting))
    }
}

/// `None`: the caller holds as many as one may.
fn place_in(callers: &Arc<Callers>, caller: &str, most: usize) -> Option<CallerPlace> {
    let mut held = callers.lock().unwrap_or_else(PoisonError::into_inner);
    let count = held.entry(caller.to_owned()).or_insert(0);
    if *count >= most {
        return None;
    }
    *count += 1;
    Some(CallerPlace { callers: Arc::clone(callers), caller: caller.to_owned() })
}

struct Queued<'l>(&'l AtomicUsize);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct CallerPlace {
    callers: Arc<Callers>,
    caller: String,
}

impl Drop for CallerPlace {
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

/// Most clients have given up by then, and a person's yes should not run much later than it was given.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(calls: usize, calls_per_caller: usize, waiting: usize) -> Limiter {
        Limiter::new(CallLimits { calls, calls_per_caller, waiting, asking: 3, asking_per_caller: 2 })
    }

    #[tokio::test]
    async fn a_caller_is_refused_beyond_the_callers_own_limit_and_others_are_not() {
        let limiter = limits(10, 1, 10);
        let slot = limiter.enter("ann").await.unwrap();
        assert_eq!(limiter.enter("ann").await.unwrap_err(), Busy::Caller);
        limiter.enter("bob").await.unwrap();
        drop(slot);
        limiter.enter("ann").await.unwrap();
        assert!(limiter.callers.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn the_queue_is_bounded_and_moves_on() {
        let limiter = Arc::new(limits(1, 10, 1));
        let running = limiter.enter("ann").await.unwrap();
        let waits = tokio::spawn({
            let limiter = Arc::clone(&limiter);
            async move { limiter.enter("bob").await.map(drop) }
        });
        while limiter.waiting.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(limiter.enter("cid").await.unwrap_err(), Busy::Gateway);
        drop(running);
        waits.await.unwrap().unwrap();
        limiter.enter("cid").await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever() {
        let limiter = limits(1, 10, 1);
        let running = limiter.enter("ann").await.unwrap();
        let begun = tokio::time::Instant::now();
        let entered = timeout(Duration::from_hours(1), limiter.enter("bob")).await.expect("an answer");
        assert_eq!((entered.unwrap_err(), begun.elapsed()), (Busy::TooLong, LONGEST_WAIT));
        assert_eq!(limiter.waiting.load(Ordering::Relaxed), 0);
        drop(running);
        limiter.enter("bob").await.unwrap();
    }

    #[test]
    fn calls_that_wait_for_a_person_are_bounded_and_hold_no_slot() {
        let limiter = limits(1, 1, 0);
        let held = [limiter.ask("ann").unwrap(), limiter.ask("ann").unwrap()];
        assert_eq!(limiter.ask("ann").unwrap_err(), Busy::Asking(QueueLimit::OfCaller(2)));
        let _bob = limiter.ask("bob").unwrap();
        assert_eq!(limiter.ask("cid").unwrap_err(), Busy::Asking(QueueLimit::InAll(3)));
        assert_eq!(limiter.slots.available_permits(), 1);
        drop(held);
        assert!(limiter.ask("cid").is_ok());
        assert_eq!(limiter.askers.lock().unwrap().keys().collect::<Vec<_>>(), ["bob"]);
    }

    #[tokio::test]
    async fn whoever_gives_up_waiting_leaves_no_place_behind() {
        let limiter = limits(1, 10, 1);
        let running = limiter.enter("ann").await.unwrap();
        drop(timeout(Duration::from_millis(1), limiter.enter("bob")).await);
        assert_eq!(limiter.waiting.load(Ordering::Relaxed), 0);
        drop(running);
        assert!(limiter.callers.lock().unwrap().is_empty());
    }
}
