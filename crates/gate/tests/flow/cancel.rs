//! A caller that goes away leaves a whole record behind.

use serde_json::json;
use toolgate_gate::Reason;

use crate::fakes::{Does, Silence, World, call, document};

#[tokio::test]
async fn a_call_that_is_dropped_while_it_runs_is_closed() {
    let world = World::new(Does::NeverEnds, &[document("say", &json!({}))]);
    let calling = world.call("say", json!({ "text": "hi" }));
    tokio::select! {
        _ = calling => panic!("it never ends"),
        () = async { while world.fake.runs() == 0 { tokio::task::yield_now().await; } } => {}
    }
    world.assert_paired();
    let record = world.journal.last();
    assert_eq!(record["reason"], Reason::Cancelled.code());
    assert_eq!(record["stage"], "decide", "the last stage that was passed");
    assert_eq!(record["decision"], "ERROR");
    assert_eq!(world.gate.metrics().running(), 0);
    assert_eq!(world.gate.open_calls(), 0);
}

#[tokio::test]
async fn a_call_that_is_dropped_while_it_waits_for_a_person_has_not_run() {
    let world = World::new(
        Does::EchoesArguments,
        &[document("say", &json!({ "humanInTheLoop": { "mode": "REQUIRED" } }))],
    );
    let mut asked = call("say", json!({ "text": "hi" }));
    asked.ask = Some(std::sync::Arc::new(Silence));
    let calling = world.gate.handle(asked);
    tokio::select! {
        _ = calling => panic!("nobody answers"),
        () = async { while world.queue.all().is_empty() { tokio::task::yield_now().await; } } => {}
    }
    world.assert_paired();
    assert_eq!(world.journal.last()["reason"], Reason::Cancelled.code());
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn a_stop_ends_what_still_runs_and_the_record_says_so() {
    let world = World::new(Does::NeverEnds, &[document("say", &json!({}))]);
    let calling = world.call("say", json!({ "text": "hi" }));
    let stopping = async {
        while world.fake.runs() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(world.gate.open_calls(), 1);
        world.gate.begin_shutdown();
        world.gate.end_calls();
        world.gate.idle().await;
    };
    let (outcome, ()) = tokio::join!(calling, stopping);
    assert_eq!(outcome.reason(), Some(Reason::Cancelled));
    world.assert_paired();
    assert_eq!(world.journal.last()["message"], "the gateway stopped before the call had ended");
    assert_eq!(world.journal.last()["stage"], "decide", "the last stage that was passed");
}

#[tokio::test]
async fn nothing_is_written_once_the_gate_is_sealed() {
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    world.gate.seal();
    let outcome = world.call("say", json!({ "text": "hi" })).await;
    assert_eq!(outcome.reason(), Some(Reason::JournalFailed));
    assert_eq!(world.fake.runs(), 0);
    assert!(world.journal.records().is_empty());
}
