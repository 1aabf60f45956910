//! Shares of the workers: how many one caller and one tool may hold, and which waiting call starts next.
//!
//! A call keeps its worker while it waits for a slow server, so one caller could hold every worker. Each rule below
//! compares what is held with what is free. The first caller gets about half of the workers, the next one half of
//! the rest, and some remain for all others. See `docs/worker.md`.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use super::Tenant;

/// Hands out workers. Cheap to clone; clones share the workers.
#[derive(Clone, Debug)]
pub struct Shares(Arc<Mutex<ShareLedger>>);

#[derive(Clone, Copy, Debug)]
pub struct ShareLimits {
    /// Calls that hold a worker.
    pub workers: usize,
    /// Calls of one caller that compute at the same time. Calls that wait for the gateway do not count.
    pub processors: usize,
    /// Calls that wait for a worker.
    pub waiting: usize,
}

#[derive(Debug)]
struct ShareLedger {
    limits: ShareLimits,
    running: Vec<RunningShare>,
    /// In order of arrival.
    waiting: VecDeque<WaitingShare>,
    /// The turn of the call that started last.
    turn: u64,
    next_id: u64,
}

#[derive(Debug)]
struct RunningShare {
    id: u64,
    tenant: Tenant,
    is_computing: bool,
}

#[derive(Debug)]
struct WaitingShare {
    id: u64,
    tenant: Tenant,
    /// One more than that of the same caller's call before it, so callers take turns.
    turn: u64,
    start: oneshot::Sender<WorkerShare>,
}

/// One worker, held by one call. Dropping it lets the next call start.
#[derive(Debug)]
pub struct WorkerShare {
    shares: Shares,
    id: u64,
}

/// While this exists, a call waits for the gateway, and another call of its caller may compute.
#[derive(Debug)]
pub struct Pause<'s>(&'s WorkerShare);

/// Removes a call from the queue, also if it is dropped while it waits.
struct QueueGuard<'s> {
    shares: &'s Shares,
    id: u64,
}

impl Shares {
    pub fn new(limits: ShareLimits) -> Self {
        let ledger =
            ShareLedger { limits, running: Vec::new(), waiting: VecDeque::new(), turn: 0, next_id: 0 };
        Self(Arc::new(Mutex::new(ledger)))
    }

    /// Waits for a worker. Returns `None` if too many calls wait already.
    pub async fn take(&self, tenant: &Tenant) -> Option<WorkerShare> {
        let (id, started) = {
            let mut ledger = self.ledger();
            let id = ledger.next_id;
            ledger.next_id = id.wrapping_add(1);
            if ledger.may_start(tenant) {
                ledger.running.push(RunningShare { id, tenant: tenant.clone(), is_computing: true });
                return Some(WorkerShare { shares: self.clone(), id });
            }
            (id, ledger.enqueue(id, tenant)?)
        };
        let _queued = QueueGuard { shares: self, id };
        started.await.ok()
    }

    /// Changes the ledger, then starts the calls that may start by now.
    fn change(&self, change: impl FnOnce(&mut ShareLedger)) {
        let mut ledger = self.ledger();
        change(&mut ledger);
        let mut started = Vec::new();
        while let Some(next) = ledger.start_next() {
            started.push((next.start, WorkerShare { shares: self.clone(), id: next.id }));
        }
        drop(ledger);
        for (start, share) in started {
            // A call that has given up drops the share, which lets the next one start.
            let _ = start.send(share);
        }
    }

    fn ledger(&self) -> MutexGuard<'_, ShareLedger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShareLedger {
    fn may_start(&self, tenant: &Tenant) -> bool {
        let free = self.limits.workers.saturating_sub(self.running.len());
        let (mut of_caller, mut computing, mut of_tool, mut of_both) = (0, 0, 0, 0);
        for running in &self.running {
            let (same_caller, same_tool) =
                (running.tenant.caller == tenant.caller, running.tenant.tool == tenant.tool);
            of_caller += usize::from(same_caller);
            computing += usize::from(same_caller && running.is_computing);
            of_tool += usize::from(same_tool);
            of_both += usize::from(same_caller && same_tool);
        }
        computing < self.limits.processors.max(1)
            && of_caller < free
            && 2 * of_both < free
            && of_tool < 3 * free
    }

    /// Returns `None` if the queue has no room for this caller. A caller gets half of the free places.
    fn enqueue(&mut self, id: u64, tenant: &Tenant) -> Option<oneshot::Receiver<WorkerShare>> {
        let own = self.waiting.iter().filter(|waiting| waiting.tenant.caller == tenant.caller);
        let (count, last) = own.fold((0, self.turn), |(count, last), own| (count + 1, last.max(own.turn)));
        if count >= self.limits.waiting.saturating_sub(self.waiting.len()) {
            return None;
        }
        let (start, started) = oneshot::channel();
        self.waiting.push_back(WaitingShare { id, tenant: tenant.clone(), turn: last + 1, start });
        Some(started)
    }

    /// The first waiting call in turn that may start.
    fn start_next(&mut self) -> Option<WaitingShare> {
        // Many waiting calls have the same caller and tool. The rules are applied once for all of them.
        let mut judged: HashMap<(&str, [u8; 32]), bool> = HashMap::new();
        let ready = self.waiting.iter().enumerate().filter(|(_, waiting)| {
            let tenant = &waiting.tenant;
            *judged.entry((tenant.caller.as_str(), tenant.tool)).or_insert_with(|| self.may_start(tenant))
        });
        let (index, _) = ready.min_by_key(|(_, waiting)| waiting.turn)?;
        let next = self.waiting.remove(index)?;
        self.turn = self.turn.max(next.turn);
        self.running.push(RunningShare { id: next.id, tenant: next.tenant.clone(), is_computing: true });
        Some(next)
    }

    fn set_computing(&mut self, id: u64, is_computing: bool) {
        if let Some(running) = self.running.iter_mut().find(|running| running.id == id) {
            running.is_computing = is_computing;
        }
    }
}

impl WorkerShare {
    /// The worker waits for the gateway: another call of the same caller may use its CPU.
    pub fn pause(&self) -> Pause<'_> {
        self.shares.change(|ledger| ledger.set_computing(self.id, false));
        Pause(self)
    }
}

/// A call that has started never waits again: its deadline runs. For a moment one more call than allowed may compute.
impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.shares.ledger().set_computing(self.0.id, true);
    }
}

impl Drop for WorkerShare {
    fn drop(&mut self) {
        self.shares.change(|ledger| ledger.running.retain(|running| running.id != self.id));
    }
}

impl Drop for QueueGuard<'_> {
    fn drop(&mut self) {
        self.shares.ledger().waiting.retain(|waiting| waiting.id != self.id);
    }
}

#[cfg(test)]
mod tests;
