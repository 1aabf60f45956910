//! How many threads wait for a disk at once, in all and of each caller? Whoever comes later waits for a turn.

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

/// The numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LookLimits {
    pub looks: usize,
    pub looks_per_caller: usize,
    /// How long one waits for a turn, and for what the arguments name to be looked at.
    pub longest: Duration,
}

/// The places of those who look at a disk: before a call, in it and after it. A look is short and is no place among the
/// running calls. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Looks {
    all: Arc<Semaphore>,
    callers: Arc<Callers>,
    limits: LookLimits,
}

type Callers = Mutex<HashMap<String, Arc<Semaphore>>>;

/// A place, given back when dropped. It belongs to the thread that looks and not to the call that waits for it: a thread that
/// hangs on a disk cannot be ended, and threads that hang must not become more and more.
#[derive(Debug)]
pub struct Looking {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
    // Dropped last: it counts who else is here.
    _caller: Caller,
}

/// Those of a configuration that says nothing. Most clients have given up after the time.
impl Default for LookLimits {
    fn default() -> Self {
        Self { looks: 16, looks_per_caller: 4, longest: Duration::from_secs(30) }
    }
}

impl Default for Looks {
    fn default() -> Self {
        Self::new(LookLimits::default())
    }
}

impl Looks {
    pub fn new(limits: LookLimits) -> Self {
        Self { all: Arc::new(Semaphore::new(limits.looks)), callers: Arc::default(), limits }
    }

    pub const fn longest(&self) -> Duration {
        self.limits.longest
    }

    /// Waits for a turn, and no longer than until `due`; `None` where it has not come. A caller's own turn comes first, so that
    /// whoever has many calls waits behind their own.
    pub async fn enter(&self, caller: &str, due: Instant) -> Option<Looking> {
        let due = due.min(Instant::now() + self.limits.longest);
        let (caller, own) = Caller::enter(&self.callers, caller, self.limits.looks_per_caller);
        let turn = async {
            let own = own.acquire_owned().await.ok()?;
            let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(Looking { _all: all, _own: own, _caller: caller })
        };
        timeout_at(due, turn).await.ok().flatten()
    }
}

impl Looking {
    /// Does what may wait for a disk beside the runtime's own threads. The place is given back when that is done, whether or not
    /// anybody still waits for it.
    pub fn spawn<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        spawn_blocking(move || {
            let done = work();
            drop(self);
            done
        })
    }
}

/// Forgets the caller with the last one who looks or waits.
#[derive(Debug)]
struct Caller {
    callers: Arc<Callers>,
    name: String,
}

impl Caller {
    fn enter(callers: &Arc<Callers>, name: &str, most: usize) -> (Self, Arc<Semaphore>) {
        let mut known = callers.lock().unwrap_or_else(PoisonError::into_inner);
        let own = known.entry(name.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(most)));
        (Self { callers: Arc::clone(callers), name: name.to_owned() }, Arc::clone(own))
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let mut known = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        // Others who look or wait hold it too; new ones come only by the lock.
        if known.get(&self.name).is_some_and(|own| Arc::strong_count(own) == 1) {
            known.remove(&self.name);
        }
    }
}

/// What whoever has not come to a place is told.
pub const NO_PLACE: &str = "too many calls look at files; none of them ended while this one waited";

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const MOST: usize = 16;
    const MOST_PER_CALLER: usize = 4;

    async fn enters(looks: &Looks, caller: &str) -> Option<Looking> {
        looks.enter(caller, Instant::now() + Duration::from_millis(10)).await
    }

    /// A thread that hangs on a disk cannot be ended, so that it is what is counted, and not the call that gave up.
    #[tokio::test]
    async fn a_place_is_given_back_by_the_thread_and_not_by_whoever_waits() {
        let looks = Looks::new(LookLimits { looks: 1, looks_per_caller: 1, ..LookLimits::default() });
        let (answer, disk) = mpsc::channel::<()>();
        let hanging = enters(&looks, "ann").await.unwrap().spawn(move || disk.recv());
        drop(hanging);
        assert!(enters(&looks, "ann").await.is_none());
        assert!(enters(&looks, "bob").await.is_none());
        answer.send(()).unwrap();
        let longest = Instant::now() + Duration::from_secs(20);
        assert!(looks.enter("bob", longest).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_for_a_turn_than_the_operator_says() {
        let looks = Looks::new(LookLimits { looks: 1, looks_per_caller: 1, longest: Duration::from_secs(2) });
        let _held = enters(&looks, "ann").await.unwrap();
        let begun = Instant::now();
        assert!(looks.enter("bob", begun + Duration::from_mins(10)).await.is_none());
        assert_eq!(begun.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_waits_behind_their_own_and_nobody_is_kept_in_mind() {
        let looks = Looks::default();
        let mut held = Vec::new();
        for _ in 0..MOST_PER_CALLER {
            held.push(enters(&looks, "ann").await.unwrap());
        }
        assert!(enters(&looks, "ann").await.is_none());
        assert!(enters(&looks, "bob").await.is_some());
        held.pop();
        assert!(enters(&looks, "ann").await.is_some());
        assert_eq!(looks.callers.lock().unwrap().keys().collect::<Vec<_>>(), ["ann"]);
        drop(held);
        assert!(looks.callers.lock().unwrap().is_empty());
        assert_eq!(looks.all.available_permits(), MOST);
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_so_many_in_all() {
        let looks = Looks::default();
        let mut held = Vec::new();
        for number in 0..MOST {
            held.push(enters(&looks, &format!("caller {}", number / MOST_PER_CALLER)).await.unwrap());
        }
        assert!(enters(&looks, "one more").await.is_none());
        held.pop();
        assert!(enters(&looks, "one more").await.is_some());
        drop(held);
        assert!(looks.callers.lock().unwrap().is_empty());
    }
}
