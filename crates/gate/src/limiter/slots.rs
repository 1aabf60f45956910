//! Run slots, and the queue of calls that wait for one. Callers take turns.
//!
//! A call that exceeds its caller's limit waits behind the other calls of that caller only. It never delays another caller.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::oneshot, time::timeout};

use super::{Busy, CallLimits};

/// Hands out run slots. Cheap to clone; clones share the slots.
#[derive(Clone, Debug)]
pub struct RunSlots(Arc<SharedSlots>);

#[derive(Debug)]
struct SharedSlots {
    limits: CallLimits,
    ledger: Mutex<SlotLedger>,
}

/// The right to run one call. Dropping it lets the next call start.
#[derive(Debug)]
pub struct Slot {
    /// The call was in the queue.
    pub has_waited: bool,
    slots: RunSlots,
    caller: String,
}

#[derive(Debug, Default)]
struct SlotLedger {
    running: usize,
    waiting: usize,
    /// Callers that have a call here, running or waiting.
    callers: HashMap<String, CallerCalls>,
    /// The turn of the call that left the queue last.
    turn: u64,
    next_id: u64,
}

#[derive(Debug, Default)]
struct CallerCalls {
    running: usize,
    waiting: VecDeque<WaitingCall>,
}

#[derive(Debug)]
struct WaitingCall {
    id: u64,
    /// One more than the turn of the same caller's call before it, so callers take turns.
    turn: u64,
    start: oneshot::Sender<Slot>,
}

/// Removes the call from the queue when dropped, also if it is dropped while it waits.
struct Queued<'s> {
    slots: &'s RunSlots,
    caller: &'s str,
    id: u64,
}

impl RunSlots {
    pub fn new(limits: CallLimits) -> Self {
        Self(Arc::new(SharedSlots { limits, ledger: Mutex::default() }))
    }

    /// Waits for a slot. Refuses if the queue is full or `limits.wait_timeout` passes.
    pub async fn enter(&self, caller: &str) -> Result<Slot, Busy> {
        let (id, started) = {
            let mut ledger = self.ledger();
            if ledger.may_start(&self.0.limits, caller) {
                ledger.start(caller);
                return Ok(Slot { has_waited: false, slots: self.clone(), caller: caller.to_owned() });
            }
            ledger.enqueue(&self.0.limits, caller)?
        };
        let queued = Queued { slots: self, caller, id };
        let turn = timeout(self.0.limits.wait_timeout, started).await;
        // Take the call out of the queue first. A slot that arrives now is dropped with `turn` and goes to the next call.
        drop(queued);
        match turn {
            Ok(Ok(slot)) => Ok(slot),
            _ => Err(self.ledger().too_long(&self.0.limits, caller)),
        }
    }

    /// Changes the ledger, then starts the calls that can start by now.
    fn change(&self, change: impl FnOnce(&mut SlotLedger)) {
        let mut ledger = self.ledger();
        change(&mut ledger);
        let mut started = Vec::new();
        while let Some((caller, start)) = ledger.start_next(&self.0.limits) {
            started.push((start, Slot { has_waited: true, slots: self.clone(), caller }));
        }
        drop(ledger);
        for (start, slot) in started {
            // A call that has given up drops the slot, which starts the next one.
            let _ = start.send(slot);
        }
    }

    fn ledger(&self) -> MutexGuard<'_, SlotLedger> {
        self.0.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub fn counts(&self) -> (usize, usize, usize) {
        let ledger = self.ledger();
        (ledger.running, ledger.waiting, ledger.callers.len())
    }
}

impl SlotLedger {
    /// Waiting calls are not overtaken: a queued call that could start has been started by the last change.
    fn may_start(&self, limits: &CallLimits, caller: &str) -> bool {
        let own = self.callers.get(caller).map_or(0, |calls| calls.running);
        self.running < limits.calls.max(1) && own < limits.calls_per_caller.max(1)
    }

    fn start(&mut self, caller: &str) {
        self.running += 1;
        match self.callers.get_mut(caller) {
            Some(calls) => calls.running += 1,
            None => {
                self.callers.insert(caller.to_owned(), CallerCalls { running: 1, ..CallerCalls::default() });
            }
        }
    }

    /// A caller gets at most half of the free queue, which leaves room for other callers.
    fn enqueue(&mut self, limits: &CallLimits, caller: &str) -> Result<(u64, oneshot::Receiver<Slot>), Busy> {
        let free = limits.waiting.saturating_sub(self.waiting);
        let own = self.callers.get(caller).map_or(0, |calls| calls.waiting.len());
        if own >= free {
            let limit = limits.waiting;
            return Err(if own == 0 { Busy::QueueFull { limit } } else { Busy::OwnQueueFull { own, limit } });
        }
        let id = self.next_id;
        self.next_id += 1;
        self.waiting += 1;
        let calls = self.callers.entry(caller.to_owned()).or_default();
        let turn = calls.waiting.back().map_or(self.turn, |last| last.turn.max(self.turn)) + 1;
        let (start, started) = oneshot::channel();
        calls.waiting.push_back(WaitingCall { id, turn, start });
        Ok((id, started))
    }

    /// Starts the waiting call whose turn comes first, among callers below their own limit.
    fn start_next(&mut self, limits: &CallLimits) -> Option<(String, oneshot::Sender<Slot>)> {
        if self.waiting == 0 || self.running >= limits.calls.max(1) {
            return None;
        }
        let below_limit =
            self.callers.iter().filter(|(_, calls)| calls.running < limits.calls_per_caller.max(1));
        let heads = below_limit.filter_map(|(caller, calls)| Some((calls.waiting.front()?, caller)));
        let (_, caller) = heads.min_by_key(|(head, _)| (head.turn, head.id))?;
        let caller = caller.clone();
        let calls = self.callers.get_mut(&caller)?;
        let next = calls.waiting.pop_front()?;
        calls.running += 1;
        self.running += 1;
        self.waiting -= 1;
        self.turn = self.turn.max(next.turn);
        Some((caller, next.start))
    }

    fn end(&mut self, caller: &str) {
        self.running = self.running.saturating_sub(1);
        if let Some(calls) = self.callers.get_mut(caller) {
            calls.running = calls.running.saturating_sub(1);
        }
        self.forget_if_gone(caller);
    }

    fn leave_queue(&mut self, caller: &str, id: u64) {
        if let Some(calls) = self.callers.get_mut(caller) {
            let before = calls.waiting.len();
            calls.waiting.retain(|waiting| waiting.id != id);
            self.waiting -= before - calls.waiting.len();
        }
        self.forget_if_gone(caller);
    }

    fn forget_if_gone(&mut self, caller: &str) {
        if self.callers.get(caller).is_some_and(|calls| calls.running == 0 && calls.waiting.is_empty()) {
            self.callers.remove(caller);
        }
    }

    /// Names the limit that held the call back.
    fn too_long(&self, limits: &CallLimits, caller: &str) -> Busy {
        let own = self.callers.get(caller).map_or(0, |calls| calls.running);
        let waited = limits.wait_timeout;
        if own >= limits.calls_per_caller {
            Busy::OwnTooLong { waited, limit: limits.calls_per_caller }
        } else {
            Busy::TooLong { waited, limit: limits.calls }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.change(|ledger| ledger.end(&self.caller));
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.slots.ledger().leave_queue(self.caller, self.id);
    }
}

#[cfg(test)]
mod tests;
