//! How many calls look at the disk at once, in all and of each caller? Whoever comes later waits for a turn.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The places of those who look. A look is short and holds no place among the running calls.
#[derive(Debug)]
pub struct Looks {
    all: Arc<Semaphore>,
    callers: Arc<Callers>,
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

impl Default for Looks {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MOST)), callers: Arc::default() }
    }
}

impl Looks {
    /// Waits as long as it takes. A caller's own turn comes first, so that whoever has many calls waits behind their own.
    pub async fn enter(&self, caller: &str) -> Result<Looking, AcquireError> {
        let (caller, own) = Caller::enter(&self.callers, caller);
        let own = own.acquire_owned().await?;
        let all = Arc::clone(&self.all).acquire_owned().await?;
        Ok(Looking { _all: all, _own: own, _caller: caller })
    }
}

/// Forgets the caller with the last one who looks or waits.
#[derive(Debug)]
struct Caller {
    callers: Arc<Callers>,
    name: String,
}

impl Caller {
    fn enter(callers: &Arc<Callers>, name: &str) -> (Self, Arc<Semaphore>) {
        let mut known = callers.lock().unwrap_or_else(PoisonError::into_inner);
        let own = known.entry(name.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(MOST_PER_CALLER)));
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

/// Far fewer than the threads that the runtime keeps for such work: journal and approvals need theirs.
const MOST: usize = 16;
const MOST_PER_CALLER: usize = 4;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    async fn enters(looks: &Looks, caller: &str) -> Option<Looking> {
        timeout(Duration::from_millis(10), looks.enter(caller)).await.ok().map(Result::unwrap)
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
