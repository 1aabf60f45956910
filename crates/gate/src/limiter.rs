//! How many calls run at once? Bounded in all and per caller, with a bounded queue before it.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CallLimits {
    pub calls: usize,
    pub calls_per_caller: usize,
    pub waiting: usize,
}

#[derive(Debug)]
pub struct Limiter {
    limits: CallLimits,
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
    callers: Arc<Mutex<HashMap<String, usize>>>,
}

/// A place among the running calls, given back when dropped.
#[derive(Debug)]
pub struct Slot {
    _permit: OwnedSemaphorePermit,
    _caller: CallerPlace,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Busy {
    Caller,
    Gateway,
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caller => "too many of your calls are running",
            Self::Gateway => "too many calls are running and waiting",
        })
    }
}

impl Limiter {
    pub fn new(limits: CallLimits) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(limits.calls.clamp(1, Semaphore::MAX_PERMITS))),
            limits,
            waiting: AtomicUsize::new(0),
            callers: Arc::default(),
        }
    }

    /// A caller's own limit refuses at once, so that nobody fills the queue for the others.
    pub async fn enter(&self, caller: &str) -> Result<Slot, Busy> {
        let place = self.place_of(caller)?;
        if let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned() {
            return Ok(Slot { _permit: permit, _caller: place });
        }
        let _queued = self.queue()?;
        let permit = Arc::clone(&self.slots).acquire_owned().await.map_err(|_| Busy::Gateway)?;
        Ok(Slot { _permit: permit, _caller: place })
    }

    fn place_of(&self, caller: &str) -> Result<CallerPlace, Busy> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let count = callers.entry(caller.to_owned()).or_insert(0);
        if *count >= self.limits.calls_per_caller {
            return Err(Busy::Caller);
        }
        *count += 1;
        Ok(CallerPlace { callers: Arc::clone(&self.callers), caller: caller.to_owned() })
    }

    fn queue(&self) -> Result<Queued<'_>, Busy> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.limits.waiting {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Busy::Gateway);
        }
        Ok(Queued(&self.waiting))
    }
}

struct Queued<'l>(&'l AtomicUsize);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct CallerPlace {
    callers: Arc<Mutex<HashMap<String, usize>>>,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(calls: usize, calls_per_caller: usize, waiting: usize) -> Limiter {
        Limiter::new(CallLimits { calls, calls_per_caller, waiting })
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

    #[tokio::test]
    async fn whoever_gives_up_waiting_leaves_no_place_behind() {
        let limiter = limits(1, 10, 1);
        let running = limiter.enter("ann").await.unwrap();
        drop(tokio::time::timeout(std::time::Duration::from_millis(1), limiter.enter("bob")).await);
        assert_eq!(limiter.waiting.load(Ordering::Relaxed), 0);
        drop(running);
        assert!(limiter.callers.lock().unwrap().is_empty());
    }
}
