//! Calls that wait: for a person, and for a place to run in.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolgate_gate::{ApprovalId, ApprovalQueue, ApprovalState, Call, CallLimits, Clock, Outcome};
use toolgate_policy::Caller;

use crate::fakes::{Does, Settings, Silence, World, call, document, shown};

fn required() -> Value {
    json!({ "humanInTheLoop": { "mode": "REQUIRED" } })
}

/// `say` is asked for, `free` is not.
fn world(does: Does, calls: CallLimits) -> Arc<World> {
    let documents = [document("say", &required()), document("free", &json!({}))];
    Arc::new(World::with(does, &documents, Settings { calls, ..Settings::default() }))
}

fn of(caller: &str, text: &str) -> Call {
    let mut call = call("say", json!({ "text": text }));
    call.caller = Caller::new(caller, ["reader"]);
    call.ask = Some(Arc::new(Silence));
    call
}

/// Started, and its question is in the queue: the `count`th one.
async fn waits(world: &Arc<World>, call: Call, count: usize) -> JoinHandle<Outcome> {
    let waiting = tokio::spawn({
        let world = Arc::clone(world);
        async move { world.gate.handle(call).await }
    });
    while world.queue.all().len() < count {
        tokio::task::yield_now().await;
    }
    waiting
}

fn decide(world: &World, id: &ApprovalId, state: ApprovalState) {
    world.queue.decide(id, state, "operator", None, world.clock.now()).unwrap();
}

/// An agent that makes one call again and again has one question in the queue, and a thousand calls that wait for it.
#[tokio::test]
async fn calls_that_wait_for_a_person_are_bounded_and_keep_nobody_from_running() {
    let calls =
        CallLimits { calls: 1, waiting: 0, asking: 3, asking_per_caller: 2, ..Settings::default().calls };
    let world = world(Does::EchoesArguments, calls);
    let first = waits(&world, of("ann", "one"), 1).await;
    let _second = waits(&world, of("ann", "two"), 2).await;
    for text in ["one", "two", "three"] {
        let outcome = world.gate.handle(of("ann", text)).await;
        assert_eq!(shown(&outcome), "execute.busy: too many of your calls wait for a person");
    }
    assert_eq!(world.queue.all().len(), 2, "nobody is asked about a call that was turned away");
    let _third = waits(&world, of("bob", "one"), 3).await;
    let outcome = world.gate.handle(of("cid", "one")).await;
    assert_eq!(shown(&outcome), "execute.busy: too many calls wait for a person");
    // All of them together hold no place to run in.
    let free = world.call("free", json!({ "text": "hi" })).await;
    assert_eq!(shown(&free), r#"released: {"text":"hi"}"#);
    // Who does not wait needs no place to wait in.
    let mut leaves = of("cid", "four");
    leaves.ask = None;
    assert!(matches!(world.gate.handle(leaves).await, Outcome::Pending(_)));
    decide(&world, &world.queue.all()[0].id, ApprovalState::Approved);
    assert_eq!(shown(&first.await.unwrap()), r#"released: {"text":"one"}"#);
    let _again = waits(&world, of("ann", "five"), 5).await;
}
