//! Disk checks: a check may block on a disk. It must not block other calls, and it ends with its call.

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

use crate::fakes::{Does, FakeSurvey, Settings, SilentClient, World, call, document, shown};

/// A disk that blocks the check of every call that says `slow`, until it is released or the stop flag is set.
#[derive(Debug, Default)]
pub struct BlockingDisk {
    is_let_go: AtomicBool,
    /// The check ignores the stop flag.
    hangs: AtomicBool,
    begun: AtomicUsize,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    stopped: AtomicUsize,
}

impl BlockingDisk {
    pub fn look(&self, arguments: &Map<String, Value>, stop: &StopFlag) {
        match arguments.get("text").and_then(Value::as_str) {
            Some("slow") => {}
            Some("panic") => panic!("on purpose"),
            _ => return,
        }
        self.begun.fetch_add(1, Ordering::SeqCst);
        let at_once = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(at_once, Ordering::SeqCst);
        // A timeout against hanging, not a measurement.
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
    world.fake.disk.set(BlockingDisk::default()).unwrap();
    Arc::new(world)
}

fn disk(world: &World) -> &BlockingDisk {
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

/// On one thread: a check on it would block timers and all other calls.
#[tokio::test]
async fn blocked_disk_check_does_not_block_other_calls() {
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
        // Calls beyond the run limit are refused by that limit, as without disk checks.
        assert!(outcome.starts_with("released: ") || outcome.starts_with("execute.busy: "), "{outcome}");
    }
    assert_eq!(disk(&world).most_at_once.load(Ordering::SeqCst), 4);
    world.assert_paired();
}

#[tokio::test]
async fn dropped_call_stops_its_disk_check() {
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

/// A hanging check cannot be stopped. The wait for it is bounded, and so is the number of its threads.
#[tokio::test]
async fn hanging_disk_refuses_its_callers_only() {
    let world = world(&json!({}));
    disk(&world).hangs.store(true, Ordering::SeqCst);
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let hanging: Vec<_> = (0..4).map(|_| start(&world, slow("ann"))).collect();
    disk(&world).has_begun(4).await;
    let too_many = start(&world, slow("ann"));
    // Let it wait for its permit. A paused clock does not advance while a thread is busy.
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
async fn panic_in_a_disk_check_is_an_internal_error() {
    let world = world(&json!({}));
    let outcome = world.call("say", json!({ "text": "panic" })).await;
    assert!(shown(&outcome).starts_with(Reason::Panicked.code()), "{outcome:?}");
    world.assert_paired();
}

/// The second check, after the approval, also runs on the blocking pool, and a disk that hangs does not consume the
/// approval.
#[tokio::test]
async fn disk_check_after_approval_does_not_consume_the_approval() {
    let world = world(&json!({ "humanInTheLoop": { "mode": "REQUIRED" } }));
    disk(&world).is_let_go.store(true, Ordering::SeqCst);
    let touched = Touch { kind: EffectKind::Read, target: "/srv/a".to_owned() };
    world.fake.survey_with(Ok(FakeSurvey { touches: vec![touched], ..FakeSurvey::default() }));
    let mut asked = slow("ann");
    asked.ask = Some(Arc::new(SilentClient));
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
async fn token_is_checked_again_after_a_long_disk_check() {
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
