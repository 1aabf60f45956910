use std::{pin::pin, task::Poll};

use super::*;

fn shares(workers: usize, processors: usize, waiting: usize) -> Shares {
    Shares::new(ShareLimits { workers, processors, waiting })
}

fn tenant(caller: &str, tool: u8) -> Tenant {
    Tenant { caller: caller.to_owned(), tool: [tool; 32] }
}

/// The share, if one is available without waiting.
async fn at_once(shares: &Shares, caller: &str, tool: u8) -> Option<WorkerShare> {
    let tenant = tenant(caller, tool);
    let mut take = pin!(shares.take(&tenant));
    match std::future::poll_fn(|context| Poll::Ready(take.as_mut().poll(context))).await {
        Poll::Ready(share) => share,
        Poll::Pending => None,
    }
}

/// All shares that one caller gets for one tool.
async fn as_many_as_possible(shares: &Shares, caller: &str, tool: u8) -> Vec<WorkerShare> {
    let mut held = Vec::new();
    while let Some(share) = at_once(shares, caller, tool).await {
        held.push(share);
    }
    held
}

#[tokio::test]
async fn one_caller_leaves_workers_for_the_others() {
    for workers in [2, 3, 4, 8, 64] {
        let shares = shares(workers, 100, 100);
        let mut held = Vec::new();
        for tool in 0..200 {
            held.extend(as_many_as_possible(&shares, "ann", tool).await);
        }
        assert!(held.len() <= workers.div_ceil(2), "{} of {workers}", held.len());
        assert!(at_once(&shares, "bob", 1).await.is_some(), "{workers}");
    }
}

#[tokio::test]
async fn several_greedy_callers_leave_a_worker_too() {
    let shares = shares(16, 100, 100);
    let mut held = Vec::new();
    for caller in ["ann", "bob", "cid"] {
        held.extend(as_many_as_possible(&shares, caller, 1).await);
        held.extend(as_many_as_possible(&shares, caller, 2).await);
    }
    assert!(at_once(&shares, "dan", 3).await.is_some(), "{} are held", held.len());
}

#[tokio::test]
async fn slow_tool_of_a_caller_leaves_room_for_the_callers_other_tools() {
    let shares = shares(8, 100, 100);
    let slow = as_many_as_possible(&shares, "ann", 1).await;
    assert_eq!(slow.len(), 3);
    assert!(at_once(&shares, "ann", 2).await.is_some());
}

#[tokio::test]
async fn tool_that_all_callers_use_leaves_room_for_other_tools() {
    let shares = shares(16, 100, 100);
    let mut held = Vec::new();
    for caller in 0..20 {
        held.extend(as_many_as_possible(&shares, &caller.to_string(), 1).await);
    }
    assert!(held.len() <= 12, "{}", held.len());
    assert!(at_once(&shares, "new", 2).await.is_some());
}

#[tokio::test]
async fn single_worker_is_not_withheld() {
    let shares = shares(1, 1, 1);
    let held = at_once(&shares, "ann", 1).await.unwrap();
    assert!(at_once(&shares, "bob", 1).await.is_none());
    drop(held);
    assert!(at_once(&shares, "bob", 1).await.is_some());
}

#[tokio::test]
async fn caller_computes_on_all_processors_and_waiting_calls_free_theirs() {
    let shares = shares(16, 2, 100);
    let [one, two] = [at_once(&shares, "ann", 1).await.unwrap(), at_once(&shares, "ann", 2).await.unwrap()];
    assert!(at_once(&shares, "ann", 3).await.is_none());
    assert!(at_once(&shares, "bob", 3).await.is_some(), "each caller has its own limit");
    let pause = one.pause();
    let third = at_once(&shares, "ann", 3).await.unwrap();
    drop(pause);
    assert!(at_once(&shares, "ann", 4).await.is_none());
    drop((one, two));
    assert!(at_once(&shares, "ann", 4).await.is_some());
    drop(third);
}

#[tokio::test]
async fn call_that_begins_to_wait_starts_the_next_one() {
    let shares = shares(16, 1, 100);
    let one = at_once(&shares, "ann", 1).await.unwrap();
    let second = tenant("ann", 2);
    let mut waits = pin!(shares.take(&second));
    assert!(poll_once(waits.as_mut()).await.is_none());
    let _pause = one.pause();
    assert!(poll_once(waits.as_mut()).await.is_some());
}

async fn poll_once<F: Future<Output = Option<WorkerShare>>>(
    mut future: std::pin::Pin<&mut F>,
) -> Option<WorkerShare> {
    match std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
        Poll::Ready(share) => share,
        Poll::Pending => None,
    }
}

#[tokio::test]
async fn callers_take_turns_in_the_queue() {
    let shares = shares(1, 1, 100);
    let mut running = at_once(&shares, "ann", 0).await.unwrap();
    let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
    for caller in ["ann", "ann", "ann", "ann", "bob", "bob", "cid"] {
        let (shares, sender) = (shares.clone(), sender.clone());
        let before = shares.ledger().waiting.len();
        let watched = shares.clone();
        tokio::spawn(async move {
            let share = shares.take(&tenant(caller, 0)).await.unwrap();
            sender.send((caller, share)).unwrap();
        });
        while watched.ledger().waiting.len() == before {
            tokio::task::yield_now().await;
        }
    }
    let mut started = Vec::new();
    for _ in 0..7 {
        drop(running);
        let (caller, share) = order.recv().await.unwrap();
        started.push(caller);
        running = share;
    }
    assert_eq!(started, ["ann", "bob", "cid", "ann", "bob", "ann", "ann"]);
}

#[tokio::test]
async fn one_caller_does_not_fill_the_queue() {
    let shares = shares(1, 1, 4);
    let _running = at_once(&shares, "ann", 0).await.unwrap();
    let [first, second, third] = ["ann", "ann", "bob"].map(|caller| tenant(caller, 0));
    let [mut one, mut two, mut three] =
        [pin!(shares.take(&first)), pin!(shares.take(&second)), pin!(shares.take(&third))];
    for waits in [one.as_mut(), two.as_mut()] {
        assert!(poll_once(waits).await.is_none());
    }
    assert_eq!(shares.ledger().waiting.len(), 2);
    assert!(shares.take(&first).await.is_none(), "a third call of the same caller is refused at once");
    assert!(poll_once(three.as_mut()).await.is_none());
    assert_eq!(shares.ledger().waiting.len(), 3);
}

#[tokio::test]
async fn call_that_gives_up_leaves_nothing_behind() {
    let shares = shares(1, 1, 4);
    let running = at_once(&shares, "ann", 0).await.unwrap();
    {
        let bob = tenant("bob", 0);
        let mut waits = Box::pin(shares.take(&bob));
        assert!(poll_once(waits.as_mut()).await.is_none());
        drop(waits);
        assert_eq!(shares.ledger().waiting.len(), 0);
        // Given up between the start and the next poll.
        let mut waits = Box::pin(shares.take(&bob));
        assert!(poll_once(waits.as_mut()).await.is_none());
        drop(running);
        assert_eq!(shares.ledger().running.len(), 1);
        drop(waits);
    }
    assert_eq!(shares.ledger().running.len(), 0);
    assert!(at_once(&shares, "cid", 0).await.is_some());
}
