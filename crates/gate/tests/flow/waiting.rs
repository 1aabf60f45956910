//! Calls that wait for a person or for a run slot.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolgate_gate::{
    Answer, ApprovalId, ApprovalQueue, ApprovalSettings, ApprovalState, ArgumentLimits, AuthStatus, Call,
    CallLimits, ClientAnswer, Clock, Decider, EffectKind, LiveSet, Outcome, Reason, Refusal, Touch,
};
use toolgate_policy::{Arguments, AskThreshold, Caller, CedarPolicies, Ruling, ToolPolicy};

use crate::fakes::{Does, FakeSurvey, Settings, SilentClient, WORKERS, World, call, document, shown};

fn required() -> Value {
    json!({ "humanInTheLoop": { "mode": "REQUIRED" } })
}

/// `say` needs an approval, `free` does not.
fn world(does: Does, calls: CallLimits) -> Arc<World> {
    let documents = [document("say", &required()), document("free", &json!({}))];
    Arc::new(World::with(does, &documents, Settings { calls, ..Settings::default() }))
}

fn of(caller: &str, text: &str) -> Call {
    let mut call = call("say", json!({ "text": text }));
    call.caller = Caller::new(caller, ["reader"]);
    call.ask = Some(Arc::new(SilentClient));
    call
}

/// Starts a call and waits until its question is in the queue, as number `count`.
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
    world.queue.decide(id, state, &Decider::Operator("operator"), None, world.clock.now()).unwrap();
}

/// An agent that repeats one call has one question in the queue, and many calls that wait for it.
#[tokio::test]
async fn calls_that_wait_for_a_person_are_bounded_and_hold_no_slot() {
    let calls =
        CallLimits { calls: 1, waiting: 0, asking: 3, asking_per_caller: 2, ..Settings::default().calls };
    let world = world(Does::EchoesArguments, calls);
    let first = waits(&world, of("ann", "one"), 1).await;
    let _second = waits(&world, of("ann", "two"), 2).await;
    for text in ["one", "two", "three"] {
        let outcome = world.gate.handle(of("ann", text)).await;
        assert_eq!(
            shown(&outcome),
            "decide.queue_full: 2 of your calls wait for a person, which is the limit (approvals.max_pending_per_caller)"
        );
    }
    assert_eq!(world.queue.all().len(), 2, "nobody is asked about a call that was turned away");
    let _third = waits(&world, of("bob", "one"), 3).await;
    let outcome = world.gate.handle(of("cid", "one")).await;
    assert_eq!(
        shown(&outcome),
        "decide.queue_full: 3 calls wait for a person, which is the limit (approvals.max_pending)"
    );
    // None of them holds a run slot.
    let free = world.call("free", json!({ "text": "hi" })).await;
    assert_eq!(shown(&free), r#"released: {"text":"hi"}"#);
    // A call that does not wait needs no permit to wait.
    let mut leaves = of("cid", "four");
    leaves.ask = None;
    assert!(matches!(world.gate.handle(leaves).await, Outcome::Pending(_)));
    decide(&world, &world.queue.all()[0].id, ApprovalState::Approved);
    assert_eq!(shown(&first.await.unwrap()), r#"released: {"text":"one"}"#);
    let _again = waits(&world, of("ann", "five"), 5).await;
}

/// `edit a/b.yml` is shown, and while the person decides, `a` becomes a symlink to `.github` or to a blocked path.
#[tokio::test]
async fn approval_does_not_cover_targets_that_changed_meanwhile() {
    let touching = |target: &str| -> Result<FakeSurvey, Refusal> {
        let touched = Touch { kind: EffectKind::Write, target: target.to_owned() };
        Ok(FakeSurvey { touches: vec![touched], ..FakeSurvey::default() })
    };
    let refusal = Refusal {
        reason: Reason::PathBlocked,
        message: "it is blocked".to_owned(),
        remedy: "name another path".to_owned(),
    };
    for now in [touching("/srv/.github/b.yml"), Err(refusal), touching("/srv/a/b.yml")] {
        let world = world(Does::EchoesArguments, Settings::default().calls);
        world.fake.survey_with(touching("/srv/a/b.yml"));
        let waiting = waits(&world, of("ann", "hi"), 1).await;
        let is_same = now.as_ref().is_ok_and(|now| now.touches[0].target == "/srv/a/b.yml");
        let is_blocked = now.is_err();
        world.fake.survey_with(now);
        decide(&world, &world.queue.only().id, ApprovalState::Approved);
        let outcome = shown(&waiting.await.unwrap());
        if is_same {
            assert_eq!(outcome, r#"released: {"text":"hi"}"#);
        } else {
            assert!(
                outcome.starts_with("decide.approval_invalid: the targets of the arguments"),
                "{outcome}"
            );
            assert_eq!(world.queue.only().state, ApprovalState::Approved, "the yes is not used up");
            let told = world.journal.last()["message"].as_str().unwrap().to_owned();
            assert_eq!(told.contains("it is blocked"), is_blocked, "{told}");
            assert_eq!(world.fake.runs(), 0);
            // If it leads to the shown target again, the approval counts, once.
            world.fake.survey_with(touching("/srv/a/b.yml"));
            let again = world.gate.handle(of("ann", "hi")).await;
            assert_eq!(shown(&again), r#"released: {"text":"hi"}"#);
        }
        assert_eq!(world.queue.only().state, ApprovalState::Used);
        assert_eq!(world.fake.runs(), 1);
    }
}

/// Takes the only run slot.
async fn with_the_only_slot_taken(world: &Arc<World>) -> JoinHandle<Outcome> {
    let running = tokio::spawn({
        let world = Arc::clone(world);
        async move { world.call("free", json!({ "text": "hi" })).await }
    });
    while world.fake.runs() == 0 {
        tokio::task::yield_now().await;
    }
    running
}

async fn ended(task: JoinHandle<Outcome>) {
    task.abort();
    drop(task.await);
}

const BUSY: &str = "execute.busy: too many calls are waiting for a run slot (`limits.waiting` is 0)";

/// A busy gateway must not cost a person a second answer.
#[tokio::test]
async fn busy_gateway_does_not_consume_an_approval() {
    let calls = CallLimits { calls: 1, waiting: 0, ..Settings::default().calls };
    let world = world(Does::NeverEnds, calls);
    let hi = || call("say", json!({ "text": "hi" }));
    assert!(matches!(world.gate.handle(hi()).await, Outcome::Pending(_)));
    let id = world.queue.only().id;
    let running = with_the_only_slot_taken(&world).await;
    // The client answers, then the queue has the answer, then the client answers again.
    let mut answered = hi();
    answered.answer =
        Some(ClientAnswer { approval: id.clone(), answer: Answer::Accept, answered_after: None });
    for call in [answered.clone(), hi(), answered] {
        assert_eq!(shown(&world.gate.handle(call).await), BUSY);
        assert_eq!(world.queue.only().state, ApprovalState::Approved, "the yes is still there");
    }
    let record = world.journal.last();
    assert_eq!(record["approval"], json!({ "id": id.as_str(), "state": "approved", "by": "client" }));
    ended(running).await;
    let again = tokio::spawn({
        let (world, call) = (Arc::clone(&world), hi());
        async move { world.gate.handle(call).await }
    });
    while world.fake.runs() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.queue.only().state, ApprovalState::Used);
    ended(again).await;
    assert!(matches!(world.gate.handle(hi()).await, Outcome::Pending(_)), "and it was good once");
    world.assert_paired();
}

#[tokio::test]
async fn busy_gateway_does_not_consume_an_approval_given_during_the_call() {
    let calls = CallLimits { calls: 1, waiting: 0, ..Settings::default().calls };
    let world = world(Does::NeverEnds, calls);
    let waiting = waits(&world, of("ann", "hi"), 1).await;
    let running = with_the_only_slot_taken(&world).await;
    decide(&world, &world.queue.only().id, ApprovalState::Approved);
    assert_eq!(shown(&waiting.await.unwrap()), BUSY);
    assert_eq!(world.queue.only().state, ApprovalState::Approved);
    assert_eq!(world.fake.runs(), 1, "only the one that was running");
    ended(running).await;
}

/// The tool's code has not started, so the approval is not consumed.
#[tokio::test]
async fn approval_is_not_consumed_without_a_worker() {
    let world = world(Does::EchoesArguments, Settings::default().calls);
    let hi = || call("say", json!({ "text": "hi" }));
    assert!(matches!(world.gate.handle(hi()).await, Outcome::Pending(_)));
    let id = world.queue.only().id;
    let others = Arc::clone(&world.fake.workers).try_acquire_many_owned(WORKERS).unwrap();
    let mut answered = hi();
    answered.answer =
        Some(ClientAnswer { approval: id.clone(), answer: Answer::Accept, answered_after: None });
    for call in [answered.clone(), hi(), answered] {
        assert_eq!(shown(&world.gate.handle(call).await), "execute.busy: every worker is busy");
        assert_eq!(world.queue.only().state, ApprovalState::Approved, "the yes is still there");
    }
    assert_eq!(world.fake.runs(), 0);
    drop(others);
    assert!(matches!(world.gate.handle(hi()).await, Outcome::Released(_)));
    assert_eq!(world.queue.only().state, ApprovalState::Used);
    assert!(matches!(world.gate.handle(hi()).await, Outcome::Pending(_)), "and it was good once");
    assert_eq!(
        world.fake.workers.available_permits(),
        WORKERS as usize,
        "who is asked about holds no worker"
    );
    world.assert_paired();
}

/// Sixteen calls may run at once, and one approval exists.
async fn with_one_approval_and_sixteen_slots() -> Arc<World> {
    let calls = CallLimits { calls: 16, calls_per_caller: 16, ..Settings::default().calls };
    let world = world(Does::EchoesArguments, calls);
    assert!(matches!(world.gate.handle(call("say", json!({ "text": "hi" }))).await, Outcome::Pending(_)));
    decide(&world, &world.queue.only().id, ApprovalState::Approved);
    world
}

fn sixteen(world: &Arc<World>) -> Vec<JoinHandle<Outcome>> {
    let one = |_| {
        let (world, call) = (Arc::clone(world), call("say", json!({ "text": "hi" })));
        tokio::spawn(async move { world.gate.handle(call).await })
    };
    (0..16).map(one).collect()
}

/// A call that is refused because no worker is free has not consumed the approval.
#[tokio::test]
async fn one_of_several_calls_with_one_worker_consumes_the_approval() {
    let world = with_one_approval_and_sixteen_slots().await;
    let _others = Arc::clone(&world.fake.workers).try_acquire_many_owned(WORKERS - 1).unwrap();
    let all = sixteen(&world);
    let mut released = 0;
    for one in all {
        let outcome = one.await.unwrap();
        match outcome.reason() {
            None => released += 1,
            Some(reason) => assert!(matches!(reason, Reason::Busy | Reason::ApprovalPending), "{outcome:?}"),
        }
    }
    assert_eq!((released, world.fake.runs()), (1, 1));
    assert_eq!(world.fake.workers.available_permits(), 1, "nobody keeps the worker");
}

/// A denial needs no run slot. If the answer were "busy", an agent would repeat the call.
#[tokio::test]
async fn busy_gateway_reports_a_denial() {
    let calls = CallLimits { calls: 1, waiting: 0, ..Settings::default().calls };
    let world = world(Does::NeverEnds, calls);
    let waiting = waits(&world, of("ann", "hi"), 1).await;
    let running = with_the_only_slot_taken(&world).await;
    let id = world.queue.only().id;
    decide(&world, &id, ApprovalState::Denied);
    assert_eq!(waiting.await.unwrap().reason(), Some(Reason::ApprovalDenied));
    let record = world.journal.last();
    assert_eq!(record["approval"], json!({ "id": id.as_str(), "state": "denied", "by": "operator" }));
    ended(running).await;
}

/// The slot is reserved before the approval is consumed, so several calls may hold a slot, but only one consumes the
/// approval.
#[tokio::test]
async fn one_of_several_calls_with_slots_consumes_the_approval() {
    let world = with_one_approval_and_sixteen_slots().await;
    let all = sixteen(&world);
    let mut released = 0;
    for one in all {
        match one.await.unwrap() {
            Outcome::Released(_) => released += 1,
            Outcome::Pending(_) => {}
            other => panic!("neither run nor asked about: {other:?}"),
        }
    }
    assert_eq!((released, world.fake.runs()), (1, 1));
}

/// A token that can be revoked.
#[derive(Default)]
struct Token {
    is_revoked: AtomicBool,
}

impl Token {
    fn revoke(&self) {
        self.is_revoked.store(true, Ordering::SeqCst);
    }
}

impl AuthStatus for Token {
    fn is_valid(&self) -> bool {
        !self.is_revoked.load(Ordering::SeqCst)
    }
}

fn by(token: &Arc<Token>, mut call: Call) -> Call {
    call.auth_status = Some(Arc::clone(token) as Arc<dyn AuthStatus>);
    call
}

#[tokio::test(start_paused = true)]
async fn revoked_token_ends_a_call_that_waits_for_a_person() {
    let world = world(Does::EchoesArguments, Settings::default().calls);
    let token = Arc::<Token>::default();
    let waiting = waits(&world, by(&token, of("ann", "hi")), 1).await;
    token.revoke();
    let outcome = waiting.await.unwrap();
    assert_eq!(outcome.reason(), Some(Reason::CallerLapsed), "long before the time to answer is over");
    assert_eq!(world.queue.only().state, ApprovalState::Pending, "nobody has answered");
    assert_eq!(world.fake.runs(), 0);
    world.assert_paired();
}

#[tokio::test]
async fn approval_of_a_caller_with_a_revoked_token_is_refused() {
    let world = world(Does::EchoesArguments, Settings::default().calls);
    let token = Arc::<Token>::default();
    let waiting = waits(&world, by(&token, of("ann", "hi")), 1).await;
    token.revoke();
    decide(&world, &world.queue.only().id, ApprovalState::Approved);
    assert_eq!(waiting.await.unwrap().reason(), Some(Reason::CallerLapsed));
    assert_eq!(world.queue.only().state, ApprovalState::Approved, "and is not spent");
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn valid_token_runs_the_approved_call() {
    let world = world(Does::EchoesArguments, Settings::default().calls);
    let waiting = waits(&world, by(&Arc::default(), of("ann", "hi")), 1).await;
    decide(&world, &world.queue.only().id, ApprovalState::Approved);
    assert_eq!(shown(&waiting.await.unwrap()), r#"released: {"text":"hi"}"#);
}

/// The queue for a run slot is a wait as well.
#[tokio::test]
async fn revoked_token_refuses_a_queued_call() {
    let calls = CallLimits { calls: 1, waiting: 1, ..Settings::default().calls };
    let world = world(Does::NeverEnds, calls);
    let token = Arc::<Token>::default();
    let running = with_the_only_slot_taken(&world).await;
    let queued = tokio::spawn({
        let (world, call) = (Arc::clone(&world), by(&token, call("free", json!({ "text": "ho" }))));
        async move { world.gate.handle(call).await }
    });
    while world.gate.open_calls() < 2 {
        tokio::task::yield_now().await;
    }
    let away = world.gate.handle(call("free", json!({ "text": "hi" }))).await;
    assert_eq!(away.reason(), Some(Reason::Busy), "the queue is full with the one that waits");
    token.revoke();
    ended(running).await;
    assert_eq!(queued.await.unwrap().reason(), Some(Reason::CallerLapsed));
    assert_eq!(world.fake.runs(), 1, "only the one that was running");
}

/// A call of `free` that waits for the only slot. `change` happens meanwhile; then the slot is released.
async fn queued_while(settings: Settings, change: impl FnOnce(&World)) -> (Outcome, usize) {
    let calls = CallLimits { calls: 1, waiting: 1, ..Settings::default().calls };
    let documents = [document("free", &json!({}))];
    let settings = Settings { calls, ..settings };
    let world = Arc::new(World::with(Does::NeverEnds, &documents, settings));
    let running = with_the_only_slot_taken(&world).await;
    let queued = tokio::spawn({
        let (world, call) = (Arc::clone(&world), call("free", json!({ "text": "ho" })));
        async move { world.gate.handle(call).await }
    });
    while world.gate.open_calls() < 2 {
        tokio::task::yield_now().await;
    }
    let full = world.gate.handle(call("free", json!({ "text": "hi" }))).await;
    assert_eq!(full.reason(), Some(Reason::Busy), "the one place in the queue is taken");
    change(&world);
    ended(running).await;
    let ended = tokio::time::timeout(Duration::from_secs(2), queued).await;
    let outcome = ended.expect("the queued call ran although it was forbidden meanwhile").unwrap();
    (outcome, world.fake.runs())
}

/// A call may wait a minute for a slot, while an operator unpublishes a tool or forbids the call.
#[tokio::test]
async fn queued_call_is_refused_after_a_change_of_tool_or_policy() {
    let forbids = |world: &World| {
        let tool = world.tool(&document("free", &json!({})));
        let cedar = CedarPolicies::new(
            &[("p.cedar".to_owned(), "forbid (principal, action, resource);".to_owned())],
            [tool.for_policies()],
        );
        world.gate.replace(LiveSet::new([tool]).0.with_policies(Some(cedar.unwrap())));
    };
    let changes: [fn(&World); 4] = [
        |world| world.make_live(&[]),
        |world| world.gate.retain(|_| false),
        |world| world.make_live(&[document("free", &json!({ "code": "return 2" }))]),
        |world| {
            let set = LiveSet::new([world.tool(&document("free", &json!({})))]).0;
            let approvals = Settings::default().approvals;
            let approvals = ApprovalSettings { ask_from: AskThreshold::Always, ..approvals };
            let arguments = ArgumentLimits { bytes: 4_096, depth: 8 };
            world.gate.replace_with_settings(set, approvals, arguments);
        },
    ];
    for change in changes {
        let (outcome, runs) = queued_while(Settings::default(), change).await;
        assert_eq!((outcome.reason(), runs), (Some(Reason::ToolChanged), 1));
    }
    let (outcome, runs) = queued_while(Settings::default(), forbids).await;
    assert_eq!((outcome.reason(), runs), (Some(Reason::ToolChanged), 1));
}

/// A policy in code has no version to compare, so it is called again.
#[tokio::test]
async fn queued_call_is_refused_after_the_policy_in_code_changes() {
    struct Closes(AtomicBool);
    impl ToolPolicy for Closes {
        fn check(&self, _: &Caller, _: &str, _: &Arguments) -> Ruling {
            let is_closed = self.0.load(Ordering::SeqCst);
            if is_closed { Ruling::Deny { reason: "closed".to_owned() } } else { Ruling::Allow }
        }
    }
    let policy = Arc::new(Closes(AtomicBool::new(false)));
    let settings = Settings { policy: Arc::clone(&policy) as Arc<dyn ToolPolicy>, ..Settings::default() };
    let (outcome, runs) = queued_while(settings, |_| policy.0.store(true, Ordering::SeqCst)).await;
    assert_eq!((outcome.reason(), runs), (Some(Reason::PolicyForbids), 1));
}

/// The wait for a worker can be as long as the wait for a slot.
#[tokio::test]
async fn call_that_waited_for_a_worker_is_refused_after_a_change() {
    let world = world(Does::EchoesArguments, Settings::default().calls);
    let others = Arc::clone(&world.fake.workers).try_acquire_many_owned(WORKERS).unwrap();
    world.fake.workers_are_waited_for.store(true, Ordering::SeqCst);
    let waiting = tokio::spawn({
        let world = Arc::clone(&world);
        async move { world.call("free", json!({ "text": "hi" })).await }
    });
    while !world.fake.is_waited_for.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    world.make_live(&[]);
    drop(others);
    assert_eq!(waiting.await.unwrap().reason(), Some(Reason::ToolChanged));
    assert_eq!(world.fake.runs(), 0);
}

/// On one thread, so blocking it blocks everything.
#[tokio::test]
async fn filtering_a_large_result_does_not_block_other_calls() {
    let large = Does::Returns("words ".repeat(20_000).into());
    let world = World::new(large, &[document("say", &json!({}))]);
    let order = std::sync::Mutex::new(Vec::new());
    let ended = async |tool: &str| {
        let outcome = world.call(tool, json!({ "text": "x" })).await;
        order.lock().unwrap().push(shown(&outcome).chars().take(20).collect::<String>());
    };
    tokio::join!(ended("say"), ended("unknown"));
    assert_eq!(*order.lock().unwrap(), ["admit.unknown_tool: ", "released: \"words wor"]);
    world.assert_paired();
}
