use std::{pin::pin, task::Poll, time::Duration};

use super::*;

fn slots(calls: usize, calls_per_caller: usize, waiting: usize) -> RunSlots {
    let wait_timeout = Duration::from_mins(1);
    let limits =
        CallLimits { calls, calls_per_caller, waiting, wait_timeout, asking: 0, asking_per_caller: 0 };
    RunSlots::new(limits)
}

/// Polls once. `None` if the call waits.
async fn polled<F>(mut future: std::pin::Pin<&mut F>) -> Option<Result<Slot, Busy>>
where
    F: Future<Output = Result<Slot, Busy>>,
{
    match std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

/// The slot, if there is one without waiting.
async fn at_once(slots: &RunSlots, caller: &str) -> Option<Slot> {
    polled(pin!(slots.enter(caller))).await.map(Result::unwrap)
}

/// Queues calls in this order and returns the order in which they start, one at a time.
async fn order(slots: &RunSlots, mut running: Slot, callers: &[&'static str]) -> Vec<&'static str> {
    let (sender, mut started) = tokio::sync::mpsc::unbounded_channel();
    for &caller in callers {
        let before = slots.counts().1;
        let (own, sender) = (slots.clone(), sender.clone());
        tokio::spawn(async move {
            let slot = own.enter(caller).await.unwrap();
            sender.send((caller, slot)).unwrap();
        });
        while slots.counts().1 == before {
            tokio::task::yield_now().await;
        }
    }
    let mut order = Vec::new();
    for _ in callers {
        drop(running);
        let (caller, slot) = started.recv().await.unwrap();
        assert!(slot.has_waited);
        order.push(caller);
        running = slot;
    }
    order
}

#[tokio::test]
async fn call_beyond_the_callers_limit_waits_and_runs() {
    let slots = slots(10, 1, 10);
    let first = at_once(&slots, "ann").await.unwrap();
    let mut second = pin!(slots.enter("ann"));
    assert!(polled(second.as_mut()).await.is_none());
    drop(first);
    assert!(polled(second.as_mut()).await.unwrap().unwrap().has_waited);
    assert_eq!(slots.counts(), (0, 0, 0));
}

#[tokio::test]
async fn all_calls_of_64_connections_of_one_caller_run() {
    let slots = slots(256, 32, 1_024);
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let slots = slots.clone();
            tokio::spawn(async move {
                for _ in 0..20 {
                    let slot = slots.enter("ann").await.unwrap();
                    assert!(slots.counts().0 <= 32);
                    tokio::task::yield_now().await;
                    drop(slot);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(slots.counts(), (0, 0, 0));
}

#[tokio::test]
async fn queue_of_one_caller_does_not_delay_another() {
    let slots = slots(3, 2, 10);
    let _running = [at_once(&slots, "ann").await.unwrap(), at_once(&slots, "ann").await.unwrap()];
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let mut waits = Box::pin(slots.enter("ann"));
        assert!(polled(waits.as_mut()).await.is_none());
        waiting.push(waits);
    }
    for _ in 0..3 {
        let bob = at_once(&slots, "bob").await.expect("a slot is free");
        assert!(!bob.has_waited);
    }
    for waits in &mut waiting {
        assert!(polled(waits.as_mut()).await.is_none(), "the caller's own limit still holds");
    }
}

#[tokio::test]
async fn callers_take_turns() {
    let slots = slots(1, 1, 100);
    let running = at_once(&slots, "ann").await.unwrap();
    let callers = ["ann", "ann", "ann", "ann", "bob", "bob", "cid"];
    assert_eq!(order(&slots, running, &callers).await, ["ann", "bob", "cid", "ann", "bob", "ann", "ann"]);
}

#[tokio::test]
async fn one_caller_does_not_fill_the_queue() {
    let slots = slots(1, 1, 4);
    let _running = at_once(&slots, "ann").await.unwrap();
    let mut waiting = Vec::new();
    for caller in ["ann", "ann", "bob"] {
        let mut waits = Box::pin(slots.enter(caller));
        assert!(polled(waits.as_mut()).await.is_none());
        waiting.push(waits);
        if waiting.len() == 2 {
            let refused = slots.enter("ann").await.unwrap_err();
            assert_eq!(refused, Busy::OwnQueueFull { own: 2, limit: 4 });
            assert!(refused.to_string().contains("`limits.waiting`"), "{refused}");
        }
    }
    let mut last = Box::pin(slots.enter("cid"));
    assert!(polled(last.as_mut()).await.is_none());
    let refused = slots.enter("dan").await.unwrap_err();
    assert_eq!(refused, Busy::QueueFull { limit: 4 });
    assert!(refused.to_string().contains("`limits.waiting`"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn wait_timeout_names_the_limit() {
    let slots = slots(2, 1, 10);
    let _ann = at_once(&slots, "ann").await.unwrap();
    let begun = tokio::time::Instant::now();
    let refused = slots.enter("ann").await.unwrap_err();
    assert_eq!(begun.elapsed(), Duration::from_mins(1));
    assert_eq!(refused, Busy::OwnTooLong { waited: Duration::from_mins(1), limit: 1 });
    assert!(refused.to_string().contains("`limits.calls_per_caller`"), "{refused}");
    let _bob = at_once(&slots, "bob").await.unwrap();
    let refused = slots.enter("cid").await.unwrap_err();
    assert!(refused.to_string().contains("`limits.calls`"), "{refused}");
    assert_eq!(slots.counts(), (2, 0, 2));
}

#[tokio::test]
async fn dropped_call_leaves_the_queue() {
    let slots = slots(1, 1, 4);
    let running = at_once(&slots, "ann").await.unwrap();
    let mut waits = Box::pin(slots.enter("bob"));
    assert!(polled(waits.as_mut()).await.is_none());
    drop(waits);
    assert_eq!(slots.counts(), (1, 0, 1));
    // Dropped between the start and the next poll.
    let mut waits = Box::pin(slots.enter("bob"));
    assert!(polled(waits.as_mut()).await.is_none());
    drop(running);
    assert_eq!(slots.counts(), (1, 0, 1));
    drop(waits);
    assert_eq!(slots.counts(), (0, 0, 0));
    assert!(at_once(&slots, "cid").await.is_some());
}
