//! DiskCheckPermit at what a call would touch may wait for a disk. It keeps nobody else waiting, and ends with whoever waits for it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::{task::JoinHandle, time::timeout};
use toolgate_gate::{
    ApprovalQueue, ApprovalState, AuthStatus, Call, Clock, Decider, EffectKind, Outcome, Reason, StopFlag,
    Touch,
};
use toolgate_policy::Caller;

use crate::fakes::{Does, FakeSurvey, Settings, Silence, World, call, document, shown};

/// A disk that keeps the look of every call that says `slow` waiting, until it is let go or the look is told to stop.
#[derive(Debug, Default)]
pub struct LookedAt {
    is_let_go: AtomicBool,
    /// Who looks at it hears of no stop.
    hangs: AtomicBool,
    begun: AtomicUsize,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    stopped: AtomicUsize,
}

impl LookedAt {
    pub fn look(&self, arguments: &Map<String, Value>, stop: &StopFlag) {
        match arguments.get("text").and_then(Value::as_str) {
            Some("slow") => {}
            Some("panic") => panic!("on purpose"),
            _ => return,
        }
        self.begun.fetch_add(1, Ordering::SeqCst);
        let at_once = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(at_once, Ordering::SeqCst);
        // A guard against hanging, not a measurement.
        for _ in 0..60_000 {
            if self.is_let_go.load(Ordering::SeqCst) {
                break;
            }
            if stop.is_set() && !self.hangs.load(Ordering::SeqCst) {
                self.stopped.fetch_add(1, Ordering::SeqCst);
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.at_once.fetch_sub(1, Ordering::SeqCst);
    }

    async fn has_begun(&self, count: usize) {
        while self.begun.load(Ordering::SeqCst) < count {
            tokio::task::yield_now().await;
        }
    }
}

fn world(change: &Value) -> Arc<World> {
    let world = World::with(Does::EchoesArguments, &[document("say", change)], Settings::default());
    world.fake.disk.set(LookedAt::default()).unwrap();
    Arc::new(world)
}

fn disk(world: &World) -> &LookedAt {
    world.fake.disk.get().unwrap()
}

fn slow(caller: &str) -> Call {
    let mut call = call("say", json!({ "text": "slow" }));
    call.caller = Caller::new(caller, ["reader"]);
    call
}

fn start(world: &Arc<World>, call: Call) -> JoinHandle<Outcome> {
    let world = Arc::clone(world);
    tokio::spawn(async move { world.gate.handle(call).await })
}

/// On one thread: a look on it would keep timers and other calls from ever running.
#[tokio::test]
async fn a_look_that_waits_for_a_disk_keeps_nobody_else_waiting() {
    let world = world(&json!({}));
    let slow_ones: Vec<_> = (0..6).map(|_| start(&world, slow("ann"))).collect();
    disk(&world).has_begun(4).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(disk(&world).at_once.load(Ordering::SeqCst), 4, "so many of one caller");
    let mut quick = call("say", json!({ "text": "quick" }));
    quick.caller = Caller::new("bob", ["reader"]);
    let outcome = timeout(Duration::from_secs(20), world.gate.handle(quick)).await.expect("it is not kept");
    assert_eq!(shown(&outcome), r#"released: {"text":"quick"}"#);
    disk(&world).is_let_go.store(true, Ordering::SeqCst);
    for slow in slow_ones {
        let outcome = shown(&slow.await.unwrap());
        // More at once than this caller may have run are refused by the limit for that, as without a look.
        assert!(outcome.starts_with("released: ") || outcome.starts_with("execute.busy: "), "{outcome}");
    }
    assert_eq!(disk(&world).most_at_once.load(Ordering::SeqCst), 4);
    world.assert_paired();
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_its_look() {
    let world = world(&json!({}));
    tokio::select! {
        outcome = world.gate.handle(slow("ann")) => panic!("nobody let it go: {outcome:?}"),
        () = disk(&world).has_begun(1) => {}
    }
    world.assert_paired();
    assert_eq!(world.journal.last()["reason"], Reason::Cancelled.code());
    while disk(&world).at_once.load(Ordering::SeqCst) > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(disk(&world).stopped.load(Ordering::SeqCst), 1);
    assert_eq!(world.fake.runs(), 0);
}

/// What hangs cannot be ended. It is waited for so long and no longer, and its threads do not become more and more.
#[tokio::test]
async fn a_disk_that_hangs_costs_its_callers_a_refusal_and_others_nothing() {
    let world = world(&json!({}));
    disk(&world).hangs.store(true, Ordering::SeqCst);
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let hanging: Vec<_> = (0..4).map(|_| start(&world, slow("ann"))).collect();
    disk(&world).has_begun(4).await;
    let too_many = start(&world, slow("ann"));
    // Until it waits for its turn. A paused clock stands still as long as a thread is busy.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::time::advance(Duration::from_secs(31)).await;
    for call in hanging {
        let outcome = shown(&call.await.unwrap());
        assert!(
            outcome.starts_with("check.argument_refused: the paths in the arguments could not"),
            "{outcome}"
        );
    }
    let outcome = shown(&too_many.await.unwrap());
    assert!(outcome.starts_with("execute.busy: too many file checks are running"), "{outcome}");
    assert!(begun.elapsed() < Duration::from_secs(40));
    assert_eq!(disk(&world).at_once.load(Ordering::SeqCst), 4, "they hang on, and are counted");
    let mut other = call("say", json!({ "text": "quick" }));
    other.caller = Caller::new("bob", ["reader"]);
    assert_eq!(shown(&world.gate.handle(other).await), r#"released: {"text":"quick"}"#);
    disk(&world).is_let_go.store(true, Ordering::SeqCst);
    world.assert_paired();
}

#[tokio::test]
async fn a_look_that_panics_is_the_gateways_own_mistake() {
    let world = world(&json!({}));
    let outcome = world.call("say", json!({ "text": "panic" })).await;
    assert!(shown(&outcome).starts_with(Reason::Panicked.code()), "{outcome:?}");
    world.assert_paired();
}

/// The second look, after the yes, waits beside the runtime too, and a yes is not used up by a disk that does not answer.
#[tokio::test]
async fn the_look_after_a_yes_keeps_nobody_waiting_and_costs_no_second_answer() {
    let world = world(&json!({ "humanInTheLoop": { "mode": "REQUIRED" } }));
    disk(&world).is_let_go.store(true, Ordering::SeqCst);
    let touched = Touch { kind: EffectKind::Read, target: "/srv/a".to_owned() };
    world.fake.survey_with(Ok(FakeSurvey { touches: vec![touched], ..FakeSurvey::default() }));
    let mut asked = slow("ann");
    asked.ask = Some(Arc::new(Silence));
    let waiting = start(&world, asked.clone());
    while world.queue.all().is_empty() {
        tokio::task::yield_now().await;
    }
    disk(&world).is_let_go.store(false, Ordering::SeqCst);
    let id = world.queue.only().id;
    world
        .queue
        .decide(&id, ApprovalState::Approved, &Decider::Operator("operator"), None, world.clock.now())
        .unwrap();
    disk(&world).has_begun(2).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    waiting.abort();
    while disk(&world).at_once.load(Ordering::SeqCst) > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(disk(&world).stopped.load(Ordering::SeqCst), 1);
    assert_eq!(world.queue.only().state, ApprovalState::Approved, "the yes is not used up");
    disk(&world).is_let_go.store(true, Ordering::SeqCst);
    assert_eq!(shown(&world.gate.handle(asked).await), r#"released: {"text":"slow"}"#);
    assert_eq!(world.queue.only().state, ApprovalState::Used);
    world.assert_paired();
}

struct Revoked(AtomicBool);

impl AuthStatus for Revoked {
    fn is_valid(&self) -> bool {
        !self.0.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn whoever_waited_long_for_a_look_is_asked_for_again() {
    let world = world(&json!({}));
    let revoked = Arc::new(Revoked(AtomicBool::new(false)));
    let mut call = slow("ann");
    call.auth_status = Some(Arc::clone(&revoked) as Arc<dyn AuthStatus>);
    let waiting = start(&world, call);
    disk(&world).has_begun(1).await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    revoked.0.store(true, Ordering::SeqCst);
    disk(&world).is_let_go.store(true, Ordering::SeqCst);
    let outcome = shown(&waiting.await.unwrap());
    assert!(outcome.starts_with(Reason::CallerLapsed.code()), "{outcome}");
    assert_eq!(world.fake.runs(), 0);
}
