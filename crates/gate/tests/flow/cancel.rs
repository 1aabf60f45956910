//! Cancelled calls have complete records.

use std::{
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use toolgate_gate::{
    Answer, ApprovalQueue, ApprovalState, ClientAnswer, Clock, Decider, EffectEntry, EffectKind, Finished,
    Observer, Outcome, Reason,
};

use crate::fakes::{Does, Settings, SilentClient, World, call, document};

#[tokio::test]
async fn call_dropped_while_running_is_closed() {
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

/// A caller that disconnects early must not hide the effects of the call.
#[tokio::test]
async fn record_of_a_dropped_call_has_its_effects() {
    for is_stopped in [false, true] {
        let world = World::new(Does::NeverEnds, &[document("say", &json!({}))]);
        let sent = EffectEntry {
            kind: EffectKind::Fetch,
            what: "fetch POST".to_owned(),
            target: "https://example.com/in".to_owned(),
            to: None,
            outcome: "200".to_owned(),
            bytes: 3,
            elapsed: Duration::ZERO,
        };
        world.fake.effects.lock().unwrap().0.push(sent);
        world.fake.effects_dropped.store(2, Ordering::SeqCst);
        world.fake.effects.lock().unwrap().1.push("reading `/etc/shadow`".to_owned());
        let begun = async {
            while world.fake.runs() == 0 {
                tokio::task::yield_now().await;
            }
            if is_stopped {
                world.gate.end_calls();
                world.gate.idle().await;
            }
        };
        let calling = world.call("say", json!({ "text": "hi" }));
        if is_stopped {
            drop(tokio::join!(calling, begun));
        } else {
            tokio::select! { _ = calling => panic!("it never ends"), () = begun => {} }
        }
        world.assert_paired();
        let run = &world.journal.last()["run"];
        assert_eq!(run["effects"][0]["target"], "https://example.com/in", "{is_stopped} {run}");
        assert_eq!(run["effectCount"], 3);
        assert_eq!(run["refused"][0], "reading `/etc/shadow`");
    }
}

#[tokio::test]
async fn call_dropped_while_waiting_for_a_person_does_not_run() {
    let world = World::new(
        Does::EchoesArguments,
        &[document("say", &json!({ "humanInTheLoop": { "mode": "REQUIRED" } }))],
    );
    let mut asked = call("say", json!({ "text": "hi" }));
    asked.ask = Some(Arc::new(SilentClient));
    let calling = world.gate.handle(asked);
    tokio::select! {
        _ = calling => panic!("nobody answers"),
        () = async { while world.queue.all().is_empty() { tokio::task::yield_now().await; } } => {}
    }
    world.assert_paired();
    let record = world.journal.last();
    assert_eq!(record["reason"], Reason::Cancelled.code());
    assert_eq!(record["approval"], json!({ "id": world.queue.only().id.as_str(), "state": "pending" }));
    assert_eq!(sources(&record), ["permissions", "human_in_the_loop"]);
    assert_eq!(world.fake.runs(), 0);
}

fn sources(record: &Value) -> Vec<&str> {
    record["decisions"].as_array().unwrap().iter().map(|voice| voice["source"].as_str().unwrap()).collect()
}

/// A disconnect or a shutdown at the moment when an approval is consumed must not lose the approval.
#[tokio::test]
async fn record_of_a_dropped_call_has_its_consumed_approval() {
    for (is_stopped, answers_itself) in [(false, false), (false, true), (true, false)] {
        let mode = json!({ "humanInTheLoop": { "mode": "REQUIRED" } });
        let world = World::new(Does::EchoesArguments, &[document("say", &mode)]);
        let mut asked = call("say", json!({ "text": "hi" }));
        assert!(matches!(world.gate.handle(asked.clone()).await, Outcome::Pending(_)));
        let id = world.queue.only().id;
        if answers_itself {
            asked.answer =
                Some(ClientAnswer { approval: id.clone(), answer: Answer::Accept, answered_after: None });
        } else {
            world
                .queue
                .decide(&id, ApprovalState::Approved, &Decider::Operator("operator"), None, world.clock.now())
                .unwrap();
        }
        world.queue.is_slow.store(true, Ordering::SeqCst);
        let spent = async {
            while world.queue.only().state != ApprovalState::Used {
                tokio::task::yield_now().await;
            }
            if is_stopped {
                world.gate.end_calls();
                world.gate.idle().await;
            }
        };
        let calling = world.gate.handle(asked);
        if is_stopped {
            drop(tokio::join!(calling, spent));
        } else {
            tokio::select! { biased; () = spent => {}, _ = calling => panic!("the yes is still being spent") }
        }
        world.assert_paired();
        let (record, by) = (world.journal.last(), if answers_itself { "client" } else { "operator" });
        assert_eq!(record["reason"], Reason::Cancelled.code());
        assert_eq!(record["approval"], json!({ "id": id.as_str(), "state": "used", "by": by }));
        assert_eq!(sources(&record), ["permissions", "human_in_the_loop"]);
        assert_eq!(world.fake.runs(), 0, "is_stopped: {is_stopped}");
    }
}

#[tokio::test]
async fn shutdown_ends_running_calls_and_records_that() {
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
    assert_eq!(world.journal.last()["message"], "the gateway stopped before the call ended");
    assert_eq!(world.journal.last()["stage"], "decide", "the last stage that was passed");
}

#[tokio::test]
async fn sealed_gate_writes_no_records() {
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    world.gate.seal();
    let outcome = world.call("say", json!({ "text": "hi" })).await;
    assert_eq!(outcome.reason(), Some(Reason::JournalFailed));
    assert_eq!(world.fake.runs(), 0);
    assert!(world.journal.records().is_empty());
}

/// Calls `say` and drops the call while its record of this kind is being written.
async fn leave_at(world: &World, kind: &'static str, arguments: Value) {
    world.journal.hold(kind);
    tokio::select! {
        _ = world.call("say", arguments) => panic!("its record is not written yet"),
        () = world.journal.is_held() => {}
    }
    world.journal.let_go();
    world.gate.idle().await;
}

fn kinds(world: &World) -> Vec<Value> {
    world.journal.records().iter().map(|record| record["kind"].clone()).collect()
}

fn count(world: &World, wanted: Reason) -> u64 {
    world.gate.metrics().ends().find(|(reason, _)| *reason == wanted).unwrap().1
}

#[tokio::test]
async fn call_dropped_while_opening_is_closed_afterwards() {
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    leave_at(&world, "call.opened", json!({ "text": "hi" })).await;
    assert_eq!(kinds(&world), ["call.opened", "call.closed"]);
    world.assert_paired();
    assert_eq!(world.journal.last()["reason"], Reason::Cancelled.code());
    assert_eq!(count(&world, Reason::Cancelled), 1);
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn call_that_was_never_opened_is_not_closed() {
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    world.journal.is_full.store(true, Ordering::SeqCst);
    leave_at(&world, "call.opened", json!({ "text": "hi" })).await;
    assert!(kinds(&world).is_empty());
    assert_eq!((count(&world, Reason::JournalFailed), count(&world, Reason::Cancelled)), (1, 0));
}

#[derive(Default)]
struct RecordingObserver(Mutex<Vec<Vec<String>>>);

impl Observer for RecordingObserver {
    fn finished(&self, call: &Finished<'_>) {
        self.0.lock().unwrap().push(call.record.alerts.clone());
    }
}

/// A caller could time its disconnect to avoid the notification about an alert.
#[tokio::test]
async fn disconnect_during_the_closing_record_does_not_skip_the_observer() {
    let told = Arc::<RecordingObserver>::default();
    let observer = Some(Arc::clone(&told) as Arc<dyn Observer>);
    let change = json!({ "x-toolgate-capability": { "audit": { "alertOn": ["launch"] } } });
    let settings = Settings { observer, ..Settings::default() };
    let world = World::with(Does::EchoesArguments, &[document("say", &change)], settings);
    leave_at(&world, "call.closed", json!({ "text": "launch" })).await;
    assert_eq!(kinds(&world), ["call.opened", "call.closed"]);
    assert_eq!(world.journal.last()["outcome"], "released");
    assert_eq!(*told.0.lock().unwrap(), [["launch"]]);
    assert_eq!((world.gate.metrics().alerts(), world.gate.metrics().released()), (1, 1));
}

struct PanickingObserver;

impl Observer for PanickingObserver {
    fn finished(&self, _: &Finished<'_>) {
        panic!("the program's own mistake");
    }
}

#[tokio::test]
async fn panic_of_an_observer_does_not_affect_the_call() {
    for waits_for_disk in [false, true] {
        let settings = Settings { observer: Some(Arc::new(PanickingObserver)), ..Settings::default() };
        let world = World::with(Does::EchoesArguments, &[document("say", &json!({}))], settings);
        if waits_for_disk {
            world.journal.hold("no record is of this kind");
        }
        let outcome = world.call("say", json!({ "text": "hi" })).await;
        assert!(matches!(outcome, Outcome::Released(_)), "{waits_for_disk}: {outcome:?}");
        world.assert_paired();
        let metrics = world.gate.metrics();
        assert_eq!((metrics.released(), metrics.observer_panics()), (1, 1), "{waits_for_disk}");
        assert_eq!(count(&world, Reason::JournalFailed), 0);
    }
}

/// A panic while a dropped call writes its end would abort the process.
#[tokio::test]
async fn panic_of_an_observer_does_not_lose_the_closing_record() {
    let settings = Settings { observer: Some(Arc::new(PanickingObserver)), ..Settings::default() };
    let world = World::with(Does::EchoesArguments, &[document("say", &json!({}))], settings);
    leave_at(&world, "call.opened", json!({ "text": "hi" })).await;
    assert_eq!(kinds(&world), ["call.opened", "call.closed"]);
    assert_eq!((count(&world, Reason::Cancelled), world.gate.metrics().observer_panics()), (1, 1));
}

#[tokio::test]
async fn call_with_a_deadline_ends_in_time_and_is_closed() {
    let world = World::new(Does::NeverEnds, &[document("say", &json!({}))]);
    let late = call("say", json!({ "text": "hi" }));
    let outcome = world.gate.handle_within(late, Duration::from_millis(20)).await;
    assert_eq!(outcome.reason(), Some(Reason::Timeout));
    world.assert_paired();
    let record = world.journal.last();
    assert_eq!(record["reason"], Reason::Timeout.code());
    assert_eq!(record["message"], "the caller's deadline for this call has passed");
    assert_eq!(world.gate.open_calls(), 0);

    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    let soon = call("say", json!({ "text": "hi" }));
    let outcome = world.gate.handle_within(soon, Duration::MAX).await;
    assert!(matches!(outcome, Outcome::Released(_)), "{outcome:?}");
}
