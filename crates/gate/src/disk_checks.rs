//! Bounds blocking file-system checks, in total and per caller. Further checks queue.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{JoinHandle, spawn_blocking},
    time::{Instant, timeout_at},
};

/// Limits of blocking file-system checks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DiskCheckLimits {
    pub total: usize,
    pub per_caller: usize,
    /// Covers the wait for a permit and the check of the paths in the arguments.
    pub timeout: Duration,
}

/// Permits for blocking file-system checks before, during and after a call. Cheap to clone.
///
/// They are separate from run slots, because checks are short.
#[derive(Clone, Debug)]
pub struct DiskCheckPermits {
    all: Arc<Semaphore>,
    callers: Arc<CallerSemaphores>,
    limits: DiskCheckLimits,
}

type CallerSemaphores = Mutex<HashMap<String, Arc<Semaphore>>>;

/// The right to run one check. Dropping it releases the permit.
///
/// The thread that checks holds it, not the call that waits: a thread that hangs on a disk cannot be stopped, and the
/// number of hanging threads must stay bounded.
#[derive(Debug)]
pub struct DiskCheckPermit {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
    // Dropped last, because it counts the other holders of the caller's semaphore.
    _caller: CheckingCaller,
}

/// The defaults of the configuration. Most clients give up before the timeout.
impl Default for DiskCheckLimits {
    fn default() -> Self {
        Self { total: 16, per_caller: 4, timeout: Duration::from_secs(30) }
    }
}

impl Default for DiskCheckPermits {
    fn default() -> Self {
        Self::new(DiskCheckLimits::default())
    }
}

impl DiskCheckPermits {
    pub fn new(limits: DiskCheckLimits) -> Self {
        Self { all: Arc::new(Semaphore::new(limits.total)), callers: Arc::default(), limits }
    }

    pub const fn timeout(&self) -> Duration {
        self.limits.timeout
    }

    /// Waits for a permit until `due` at most. Returns `None` if there was none in time. The caller's own limit applies
    /// first: a caller with many calls waits behind their own calls.
    pub async fn enter(&self, caller: &str, due: Instant) -> Option<DiskCheckPermit> {
        let due = due.min(Instant::now() + self.limits.timeout);
        let (caller, own) = CheckingCaller::enter(&self.callers, caller, self.limits.per_caller);
        let turn = async {
            let own = own.acquire_owned().await.ok()?;
            let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(DiskCheckPermit { _all: all, _own: own, _caller: caller })
        };
        timeout_at(due, turn).await.ok().flatten()
    }
}

impl DiskCheckPermit {
    /// Runs blocking work on the blocking pool. The permit is released when the work ends, even if its result is no longer
    /// wanted.
    pub fn spawn<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        spawn_blocking(move || {
            let done = work();
            drop(self);
            done
        })
    }
}

/// Removes the caller's semaphore when the last check of the caller ends.
#[derive(Debug)]
struct CheckingCaller {
    callers: Arc<CallerSemaphores>,
    name: String,
}

impl CheckingCaller {
    fn enter(callers: &Arc<CallerSemaphores>, name: &str, most: usize) -> (Self, Arc<Semaphore>) {
        let mut known = callers.lock().unwrap_or_else(PoisonError::into_inner);
        let own = known.entry(name.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(most)));
        (Self { callers: Arc::clone(callers), name: name.to_owned() }, Arc::clone(own))
    }
}

impl Drop for CheckingCaller {
    fn drop(&mut self) {
        let mut known = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        // Other checks of this caller hold the semaphore too. New ones need the lock.
        if known.get(&self.name).is_some_and(|own| Arc::strong_count(own) == 1) {
            known.remove(&self.name);
        }
    }
}

/// The message for a call that got no permit in time.
pub const NO_DISK_CHECK_PERMIT: &str = "too many file checks are running; none ended in time for this call";

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LIMIT: usize = 16;
    const LIMIT_PER_CALLER: usize = 4;

    async fn permit(disk_checks: &DiskCheckPermits, caller: &str) -> Option<DiskCheckPermit> {
        disk_checks.enter(caller, Instant::now() + Duration::from_millis(10)).await
    }

    /// A thread that hangs on a disk cannot be stopped, so it holds the permit, not the call that gave up.
    #[tokio::test]
    async fn permit_is_held_until_the_blocking_thread_ends() {
        let disk_checks =
            DiskCheckPermits::new(DiskCheckLimits { total: 1, per_caller: 1, ..DiskCheckLimits::default() });
        let (answer, disk) = mpsc::channel::<()>();
        let hanging = permit(&disk_checks, "ann").await.unwrap().spawn(move || disk.recv());
        drop(hanging);
        assert!(permit(&disk_checks, "ann").await.is_none());
        assert!(permit(&disk_checks, "bob").await.is_none());
        answer.send(()).unwrap();
        let due = Instant::now() + Duration::from_secs(20);
        assert!(disk_checks.enter("bob", due).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn wait_for_a_permit_ends_at_the_configured_timeout() {
        let disk_checks = DiskCheckPermits::new(DiskCheckLimits {
            total: 1,
            per_caller: 1,
            timeout: Duration::from_secs(2),
        });
        let _held = permit(&disk_checks, "ann").await.unwrap();
        let begun = Instant::now();
        assert!(disk_checks.enter("bob", begun + Duration::from_mins(10)).await.is_none());
        assert_eq!(begun.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn callers_are_limited_separately_and_forgotten_after_their_last_check() {
        let disk_checks = DiskCheckPermits::default();
        let mut held = Vec::new();
        for _ in 0..LIMIT_PER_CALLER {
            held.push(permit(&disk_checks, "ann").await.unwrap());
        }
        assert!(permit(&disk_checks, "ann").await.is_none());
        assert!(permit(&disk_checks, "bob").await.is_some());
        held.pop();
        assert!(permit(&disk_checks, "ann").await.is_some());
        assert_eq!(disk_checks.callers.lock().unwrap().keys().collect::<Vec<_>>(), ["ann"]);
        drop(held);
        assert!(disk_checks.callers.lock().unwrap().is_empty());
        assert_eq!(disk_checks.all.available_permits(), LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn total_number_of_checks_is_limited() {
        let disk_checks = DiskCheckPermits::default();
        let mut held = Vec::new();
        for number in 0..LIMIT {
            held.push(permit(&disk_checks, &format!("caller {}", number / LIMIT_PER_CALLER)).await.unwrap());
        }
        assert!(permit(&disk_checks, "one more").await.is_none());
        held.pop();
        assert!(permit(&disk_checks, "one more").await.is_some());
        drop(held);
        assert!(disk_checks.callers.lock().unwrap().is_empty());
    }
}
