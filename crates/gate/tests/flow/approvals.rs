//! Approvals: who is asked, which answers count, and what they cover.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use toolgate_gate::{
    Answer, ApprovalError, ApprovalId, ApprovalQueue, ApprovalSettings, ApprovalState, Ask, Binding, Call,
    ClientAnswer, Clock, Decider, EffectKind, LiveSet, Outcome, Reason, Touch,
};
use toolgate_policy::{AskThreshold, Caller, CedarPolicies, PolicySet};

use crate::fakes::{
    A_THOUGHT, AnsweringClient, Does, FakeSurvey, RecordingClient, Settings, SilentClient, World, call,
    document, shown,
};

fn required() -> Value {
    json!({ "humanInTheLoop": { "mode": "REQUIRED" } })
}

fn world() -> World {
    World::new(Does::EchoesArguments, &[document("say", &required())])
}

fn answering(arguments: Value, id: &ApprovalId, answer: Answer) -> Call {
    let mut call = call("say", arguments);
    call.answer = Some(ClientAnswer { approval: id.clone(), answer, answered_after: None });
    call
}

/// A call whose question is in the queue while the client does not answer.
async fn asked_without_answer(world: &Arc<World>) -> tokio::task::JoinHandle<Outcome> {
    let waiting = tokio::spawn({
        let world = Arc::clone(world);
        async move {
            let mut asked = call("say", json!({ "text": "hi" }));
            asked.ask = Some(Arc::new(SilentClient));
            world.gate.handle(asked).await
        }
    });
    while world.queue.all().is_empty() {
        tokio::task::yield_now().await;
    }
    waiting
}

fn approve(world: &World, id: &ApprovalId) {
    world
        .queue
        .decide(id, ApprovalState::Approved, &Decider::Operator("operator"), None, world.clock.now())
        .unwrap();
}

#[tokio::test]
async fn approved_call_runs_once() {
    let world = world();
    let outcome = world.call("say", json!({ "text": "hi" })).await;
    let text = "Run the tool say? Risk L0, called by ann.\n\
        Asked because: human_in_the_loop: the tool wants every call confirmed\n\
        Arguments: {\"text\":\"hi\"}\n\
        Message: Run the tool say with {\"text\":\"hi\"}?";
    assert_eq!(shown(&outcome), format!("pending: {text}"));
    let id = world.queue.only().id;
    assert_eq!(world.call("say", json!({ "text": "hi" })).await.reason(), Some(Reason::ApprovalPending));
    assert_eq!(world.queue.only().id, id, "asking again does not ask twice");
    approve(&world, &id);
    assert_eq!(shown(&world.call("say", json!({ "text": "hi" })).await), r#"released: {"text":"hi"}"#);
    assert_eq!(world.journal.last()["approval"], json!({ "id": id.as_str(), "by": "operator" }));
    assert_eq!(world.call("say", json!({ "text": "hi" })).await.reason(), Some(Reason::ApprovalPending));
    assert_eq!(world.fake.runs(), 1);
    world.assert_paired();
}

#[tokio::test]
async fn approval_is_bound_to_arguments_caller_and_tool() {
    let world =
        World::new(Does::EchoesArguments, &[document("say", &required()), document("shout", &required())]);
    let _ = world.call("say", json!({ "text": "hi" })).await;
    approve(&world, &world.queue.only().id);
    assert_eq!(world.call("say", json!({ "text": "ho" })).await.reason(), Some(Reason::ApprovalPending));
    assert_eq!(world.call("shout", json!({ "text": "hi" })).await.reason(), Some(Reason::ApprovalPending));
    let mut other = call("say", json!({ "text": "hi" }));
    other.caller = Caller::new("bob", ["reader"]);
    assert_eq!(world.gate.handle(other).await.reason(), Some(Reason::ApprovalPending));
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn integers_beyond_2_53_are_refused() {
    let world = world();
    let of = |extra: Value| json!({ "text": "hi", "extra": extra });
    let widest = of(json!({ "id": 9_007_199_254_740_991_i64, "other": -9_007_199_254_740_991_i64 }));
    assert_eq!(world.call("say", widest.clone()).await.reason(), Some(Reason::ApprovalPending));
    approve(&world, &world.queue.only().id);
    assert_eq!(world.call("say", widest).await.reason(), None);
    for (arguments, place) in [
        (of(json!({ "id": 9_007_199_254_740_992_i64 })), "/extra/id"),
        (of(json!({ "id": 9_007_199_254_740_993_i64 })), "/extra/id"),
        (of(json!({ "id": -9_007_199_254_740_993_i64 })), "/extra/id"),
        (of(json!({ "id": i64::MIN })), "/extra/id"),
        (of(json!({ "id": u64::MAX })), "/extra/id"),
        (of(json!({ "a/b": [1, { "c~d": 9_007_199_254_740_993_i64 }] })), "/extra/a~1b/1/c~0d"),
        (of(json!("{\"id\": 9007199254740993}")), "/extra/id"),
        (json!({ "text": "hi", "count": 9_007_199_254_740_993_i64 }), "/count"),
        (json!({ "text": "hi", "count": "9007199254740993" }), "/count"),
    ] {
        let outcome = world.call("say", arguments.clone()).await;
        assert_eq!(outcome.reason(), Some(Reason::InputShape), "{arguments}");
        let Outcome::Refused(refused) = outcome else { panic!("not refused: {arguments}") };
        assert!(refused.to_caller.contains(&format!("`{place}`")), "{}", refused.to_caller);
        assert_eq!(refused.remedy.as_deref(), Some("pass it as text if the tool accepts that"));
    }
    let as_text = of(json!({ "id": "9007199254740993" }));
    assert_eq!(world.call("say", as_text).await.reason(), Some(Reason::ApprovalPending));
    assert_eq!((world.queue.all().len(), world.fake.runs()), (2, 1), "nobody was asked about the others");
}

/// The approver, the digest and the tool use the same form of the arguments.
#[tokio::test]
async fn arguments_with_one_digest_have_one_form() {
    let world = world();
    let of = |extra: &str| {
        let extra: Value = serde_json::from_str(extra).unwrap();
        json!({ "text": "hi", "extra": extra })
    };
    let asked = of(r#"{ "from": "a", "to": "b", "n": 0, "list": [{ "x": 1, "y": 5e-7 }] }"#);
    let run = of(r#"{ "to": "b", "list": [{ "y": 0.0000005, "x": 1.0 }], "n": -0.0, "from": "a" }"#);
    let one_form = r#"{"extra":{"from":"a","list":[{"x":1,"y":5e-7}],"n":0,"to":"b"},"text":"hi"}"#;
    let _ = world.call("say", asked).await;
    assert_eq!(world.queue.only().question.arguments.as_deref(), Some(one_form));
    approve(&world, &world.queue.only().id);
    assert_eq!(shown(&world.call("say", run).await), format!("released: {one_form}"));
    // JSON in text is normalised too.
    let as_text = json!({ "extra": r#"{"to":"b","n":-0,"from":"a"}"#, "count": 2.0, "text": "ho" });
    let _ = world.call("say", as_text).await;
    let shown = world.queue.all()[1].question.arguments.clone();
    let one_form = r#"{"count":2,"extra":{"from":"a","n":0,"to":"b"},"text":"ho"}"#;
    assert_eq!(shown.as_deref(), Some(one_form));
}

#[tokio::test]
async fn approval_does_not_cover_an_edited_tool() {
    let world = world();
    let _ = world.call("say", json!({ "text": "hi" })).await;
    approve(&world, &world.queue.only().id);
    let mut edited = required();
    edited["code"] = json!("return text + '!'");
    world.make_live(&[document("say", &edited)]);
    assert_eq!(world.call("say", json!({ "text": "hi" })).await.reason(), Some(Reason::ApprovalPending));
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn changed_policy_asks_again() {
    let world = world();
    let _ = world.call("say", json!({ "text": "hi" })).await;
    approve(&world, &world.queue.only().id);
    let mut wider = required();
    wider["sandboxOverrides"] = json!({ "fileRead": true });
    world.make_live(&[document("say", &wider)]);
    assert_eq!(world.call("say", json!({ "text": "hi" })).await.reason(), Some(Reason::ApprovalPending));
}

#[tokio::test]
async fn changed_policy_of_the_same_document_asks_again() {
    let mut world = world();
    let documents = [document("say", &required())];
    let _ = world.call("say", json!({ "text": "hi" })).await;
    let first = world.queue.only();
    approve(&world, &first.id);
    let baseline = PolicySet::SHIPPED_BASELINE.replace("500000", "400000");
    assert_ne!(baseline, PolicySet::SHIPPED_BASELINE);
    world.publisher.policies = Arc::new(PolicySet::new(&baseline, PolicySet::SHIPPED_PROFILES).unwrap());
    world.make_live(&documents);
    assert_eq!(world.call("say", json!({ "text": "hi" })).await.reason(), Some(Reason::ApprovalPending));
    assert_eq!(world.fake.runs(), 0);
    let all = world.queue.all();
    let [spendable, asked] = all.as_slice() else { panic!("not asked anew") };
    assert_eq!(spendable.state, ApprovalState::Approved, "the yes was not spent");
    let (before, after) = (&first.question.binding, &asked.question.binding);
    assert_ne!(before.policy_digest, after.policy_digest);
    // Only the policy differs, so the approval was bound to the policy.
    assert_eq!(Binding { policy_digest: before.policy_digest.clone(), ..after.clone() }, *before);
    // Under the old policy the approval is still valid.
    world.publisher.policies = Arc::new(PolicySet::shipped().unwrap());
    world.make_live(&documents);
    assert_eq!(world.call("say", json!({ "text": "hi" })).await.reason(), None);
}

#[tokio::test]
async fn approval_expires() {
    let world = world();
    let _ = world.call("say", json!({ "text": "hi" })).await;
    approve(&world, &world.queue.only().id);
    world.clock.advance(Duration::from_secs(901));
    assert_eq!(world.call("say", json!({ "text": "hi" })).await.reason(), Some(Reason::ApprovalPending));
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn client_answers_its_own_question_only() {
    let world = world();
    let _ = world.call("say", json!({ "text": "hi" })).await;
    let id = world.queue.only().id;
    let elsewhere = answering(json!({ "text": "ho" }), &id, Answer::Accept);
    assert_eq!(world.gate.handle(elsewhere).await.reason(), Some(Reason::ApprovalInvalid));
    let mut stolen = answering(json!({ "text": "hi" }), &id, Answer::Accept);
    stolen.caller = Caller::new("bob", ["reader"]);
    assert_eq!(world.gate.handle(stolen).await.reason(), Some(Reason::ApprovalInvalid));
    assert_eq!(world.queue.only().state, ApprovalState::Pending, "a wrong answer answers nothing");
    let own = answering(json!({ "text": "hi" }), &id, Answer::Accept);
    assert_eq!(shown(&world.gate.handle(own.clone()).await), r#"released: {"text":"hi"}"#);
    assert_eq!(world.gate.handle(own).await.reason(), Some(Reason::ApprovalInvalid), "replayed");
    assert_eq!(world.fake.runs(), 1);
}

#[tokio::test]
async fn unknown_or_expired_answer_is_refused() {
    let world = world();
    let unknown = answering(json!({ "text": "hi" }), &ApprovalId::from_random([9; 16]), Answer::Accept);
    assert_eq!(world.gate.handle(unknown).await.reason(), Some(Reason::ApprovalInvalid));
    let _ = world.call("say", json!({ "text": "hi" })).await;
    world.clock.advance(Duration::from_secs(901));
    let late = answering(json!({ "text": "hi" }), &world.queue.only().id, Answer::Accept);
    assert_eq!(world.gate.handle(late).await.reason(), Some(Reason::ApprovalInvalid));
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn client_can_deny() {
    let world = world();
    let _ = world.call("say", json!({ "text": "hi" })).await;
    let id = world.queue.only().id;
    let outcome = world.gate.handle(answering(json!({ "text": "hi" }), &id, Answer::Decline)).await;
    let message =
        "decide.approval_denied: your client answered no to this call; it was not run; do not repeat it";
    assert_eq!(shown(&outcome), message);
    let again = world.gate.handle(answering(json!({ "text": "hi" }), &id, Answer::Accept)).await;
    assert_eq!(again.reason(), Some(Reason::ApprovalDenied), "and the client cannot turn it into a yes");
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn client_that_supports_questions_is_asked() {
    for (answer, expect) in [
        (Answer::Accept, None),
        (Answer::Decline, Some(Reason::ApprovalDenied)),
        (Answer::Cancel, Some(Reason::ApprovalPending)),
        (Answer::Lost, Some(Reason::ApprovalPending)),
    ] {
        let world = world();
        let mut asked = call("say", json!({ "text": "hi" }));
        asked.ask = Some(Arc::new(AnsweringClient(answer, A_THOUGHT)));
        let outcome = world.gate.handle(asked).await;
        assert_eq!(outcome.reason(), expect, "{answer:?}");
        assert_eq!(world.fake.runs(), usize::from(expect.is_none()));
        world.assert_paired();
    }
}

/// `claude -p` cancels every question and `codex exec` declines it, without a person.
#[tokio::test]
async fn cancel_and_instant_decline_leave_the_question_in_the_queue() {
    for answer in [Answer::Cancel, Answer::Decline] {
        let world = world();
        let mut asked = call("say", json!({ "text": "hi" }));
        asked.ask = Some(Arc::new(AnsweringClient(answer, Duration::ZERO)));
        let Outcome::Pending(pending) = world.gate.handle(asked).await else {
            panic!("{answer:?}: not pending")
        };
        assert!(!pending.client_may_answer && !pending.to_caller.contains("declined"), "{pending:?}");
        assert_eq!(world.queue.only().state, ApprovalState::Pending);
        // The same answer from a client that repeats the call with it.
        let mut again = answering(json!({ "text": "hi" }), &pending.approval, answer);
        again.answer.as_mut().unwrap().answered_after = Some(Duration::from_millis(999));
        let Outcome::Pending(pending) = world.gate.handle(again).await else {
            panic!("{answer:?}: not pending")
        };
        assert!(!pending.client_may_answer, "asked again, it would answer the same again");
        approve(&world, &pending.approval);
        assert_eq!(world.call("say", json!({ "text": "hi" })).await.reason(), None);
    }
}

#[tokio::test]
async fn decline_counts_in_its_conversation_and_can_be_overruled() {
    let world = world();
    let of = |conversation: &str, answer| {
        let mut call = call("say", json!({ "text": "hi" }));
        call.client.conversation = Some(conversation.to_owned());
        call.ask = Some(Arc::new(AnsweringClient(answer, A_THOUGHT)));
        call
    };
    let denied = Some(Reason::ApprovalDenied);
    assert_eq!(world.gate.handle(of("one", Answer::Decline)).await.reason(), denied);
    let declined = world.queue.only();
    assert!(declined.is_declined_by_client());
    assert_eq!(world.gate.handle(of("one", Answer::Accept)).await.reason(), denied, "not asked again");
    assert_eq!(world.gate.handle(of("two", Answer::Accept)).await.reason(), None, "another client is asked");
    approve(&world, &declined.id);
    let mut again = of("one", Answer::Decline);
    again.ask = None;
    assert_eq!(world.gate.handle(again).await.reason(), None, "an operator has overturned it");
    assert_eq!(world.fake.runs(), 2);
}

#[tokio::test]
async fn denial_by_an_operator_counts_everywhere() {
    let world = world();
    let _ = world.call("say", json!({ "text": "hi" })).await;
    let id = world.queue.only().id;
    let operator = Decider::Operator("operator");
    world.queue.decide(&id, ApprovalState::Denied, &operator, None, world.clock.now()).unwrap();
    for conversation in [None, Some("one".to_owned())] {
        let mut again = call("say", json!({ "text": "hi" }));
        again.client.conversation = conversation;
        let message =
            "decide.approval_denied: an operator denied this call; it was not run; do not repeat it";
        assert_eq!(shown(&world.gate.handle(again).await), message);
    }
    let late = world.queue.decide(&id, ApprovalState::Approved, &operator, None, world.clock.now());
    assert_eq!(late.unwrap_err(), ApprovalError::NotPending(ApprovalState::Denied));
}

#[tokio::test(start_paused = true)]
async fn unanswered_question_times_out() {
    let world = world();
    let mut asked = call("say", json!({ "text": "hi" }));
    asked.ask = Some(Arc::new(SilentClient));
    let outcome = world.gate.handle(asked).await;
    assert_eq!(outcome.reason(), Some(Reason::ApprovalTimeout));
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn operator_may_answer_while_the_client_is_silent() {
    let world = Arc::new(world());
    let waiting = asked_without_answer(&world).await;
    approve(&world, &world.queue.only().id);
    assert_eq!(shown(&waiting.await.unwrap()), r#"released: {"text":"hi"}"#);
}

#[tokio::test]
async fn client_answer_is_ignored_if_only_the_queue_may_answer() {
    let approvals = ApprovalSettings { client_may_answer: false, ..Settings::default().approvals };
    let settings = Settings { approvals, ..Settings::default() };
    let world = World::with(Does::EchoesArguments, &[document("say", &required())], settings);
    let mut asked = call("say", json!({ "text": "hi" }));
    asked.ask = Some(Arc::new(AnsweringClient(Answer::Accept, Duration::ZERO)));
    assert_eq!(world.gate.handle(asked).await.reason(), Some(Reason::ApprovalPending));
    let own = answering(json!({ "text": "hi" }), &world.queue.only().id, Answer::Accept);
    assert_eq!(world.gate.handle(own).await.reason(), Some(Reason::ApprovalPending));
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn one_approval_runs_one_of_two_calls() {
    let world = Arc::new(world());
    let _ = world.call("say", json!({ "text": "hi" })).await;
    approve(&world, &world.queue.only().id);
    let calls = (0..8).map(|_| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { world.call("say", json!({ "text": "hi" })).await })
    });
    let mut released = 0;
    for call in calls.collect::<Vec<_>>() {
        released += usize::from(matches!(call.await.unwrap(), Outcome::Released(_)));
    }
    assert_eq!((released, world.fake.runs()), (1, 1));
}

#[tokio::test]
async fn unavailable_queue_refuses_the_call() {
    let world = world();
    world.queue.is_down.store(true, Ordering::SeqCst);
    let outcome = world.call("say", json!({ "text": "hi" })).await;
    assert_eq!(outcome.reason(), Some(Reason::ApprovalsUnavailable));
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn tools_without_approval_settings_are_asked_about_by_risk() {
    let check = async |change: Value, ask_from: AskThreshold, expect: Option<Reason>| {
        let approvals = ApprovalSettings { ask_from, ..Settings::default().approvals };
        let settings = Settings { approvals, ..Settings::default() };
        let world = World::with(Does::EchoesArguments, &[document("say", &change)], settings);
        assert_eq!(
            world.call("say", json!({ "text": "hi" })).await.reason(),
            expect,
            "{change} {ask_from:?}"
        );
    };
    let by_risk = Settings::default().approvals.ask_from;
    let reads = json!({ "sandboxOverrides": { "fileRead": true } });
    let asked = Some(Reason::ApprovalPending);
    check(json!({}), by_risk, None).await;
    check(reads.clone(), by_risk, asked).await;
    check(reads.clone(), AskThreshold::Never, None).await;
    check(json!({}), AskThreshold::Always, asked).await;
    let mut disabled = reads;
    disabled["humanInTheLoop"] = json!({ "mode": "DISABLED" });
    check(disabled.clone(), by_risk, None).await;
    check(disabled, AskThreshold::Always, asked).await;
    check(required(), AskThreshold::Never, asked).await;
}

#[tokio::test]
async fn danger_pattern_always_asks() {
    let change = json!({
        "humanInTheLoop": { "mode": "DISABLED" },
        "x-toolgate-capability": { "approval": { "level": "auto", "dangerPatterns": ["rm\\s+-rf"] } },
    });
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    assert_eq!(world.call("say", json!({ "text": "ls" })).await.reason(), None);
    for arguments in [json!({ "text": "rm -rf /" }), json!({ "text": "x", "extra": { "rm\t-rf": 1 } })] {
        assert_eq!(world.call("say", arguments).await.reason(), Some(Reason::ApprovalPending));
    }
    assert_eq!(world.journal.last()["dangers"], json!(["rm\\s+-rf"]));
}

#[tokio::test]
async fn approval_is_remembered_per_conversation_and_never_for_danger() {
    let change = json!({ "x-toolgate-capability": { "approval": {
        "level": "ask", "trustAfterApproval": true, "dangerPatterns": ["danger"],
    } } });
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    let of_flow = |text: &str, flow: Option<&str>| {
        let mut call = call("say", json!({ "text": text }));
        call.client.conversation = flow.map(str::to_owned);
        call
    };
    let _ = world.gate.handle(of_flow("a", Some("one"))).await;
    approve(&world, &world.queue.only().id);
    assert_eq!(world.gate.handle(of_flow("a", Some("one"))).await.reason(), None);
    assert_eq!(world.gate.handle(of_flow("b", Some("one"))).await.reason(), None, "trusted now");
    assert_eq!(world.journal.last()["approval"], json!({ "trusted": true }));
    let asked = Some(Reason::ApprovalPending);
    assert_eq!(world.gate.handle(of_flow("b", Some("two"))).await.reason(), asked);
    assert_eq!(world.gate.handle(of_flow("b", None)).await.reason(), asked, "of no flow");
    assert_eq!(world.gate.handle(of_flow("danger", Some("one"))).await.reason(), asked);
    world.clock.advance(Duration::from_secs(3601));
    assert_eq!(world.gate.handle(of_flow("c", Some("one"))).await.reason(), asked);
}

/// An approver sees grants beyond the arguments, and the approval is bound to them.
#[tokio::test]
async fn effects_beyond_the_arguments_are_in_the_question() {
    let world = world();
    let touch = |target: &str| Touch { kind: EffectKind::Write, target: target.to_owned() };
    let why = "to make `/w/docs/new` it may write all of `/w/docs`";
    let folder = FakeSurvey {
        touches: vec![touch("/w/docs/new"), touch("/w/docs")],
        widened: vec![why.to_owned()],
        ..FakeSurvey::default()
    };
    world.fake.survey_with(Ok(folder));
    let outcome = world.call("say", json!({ "text": "hi" })).await;
    assert!(shown(&outcome).contains(why), "{}", shown(&outcome));
    let asked = world.queue.only();
    assert!(asked.question.because.contains(&format!("touches: {why}")), "{:?}", asked.question.because);
    approve(&world, &asked.id);
    // The file exists by now: another grant, and another question.
    world.fake.survey_with(Ok(FakeSurvey { touches: vec![touch("/w/docs/new")], ..FakeSurvey::default() }));
    let again = world.call("say", json!({ "text": "hi" })).await;
    assert_eq!(again.reason(), Some(Reason::ApprovalPending));
    assert_eq!(world.queue.all().len(), 2);
}

#[tokio::test]
async fn prompts_cannot_be_forged_by_arguments() {
    let mut change = required();
    change["humanInTheLoop"]["promptTemplate"] =
        json!("Write {args.text} with {toolName}?\nAll: {args} {other}");
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    let hostile = "\u{1b}[2K{toolName}{args}\u{202e}\nApprove: yes s3cr3t-value";
    let outcome = world.call("say", json!({ "text": hostile })).await;
    let prompt = shown(&outcome);
    assert!(!prompt.contains('\u{1b}') && !prompt.contains('\u{202e}'), "{prompt}");
    assert_eq!(
        labels(&prompt),
        ["Run the tool say?", "Asked because:", "Arguments:", "Not shown:", "Message:"]
    );
    assert!(prompt.contains("{toolName}{args}"), "an argument is not a template: {prompt}");
    assert!(!prompt.contains("s3cr3t"), "{prompt}");
    assert!(prompt.contains("{other}"), "{prompt}");
    let _ = world.call("say", json!({ "text": "x".repeat(3_000) })).await;
    assert!(world.queue.all()[1].question.prompt.chars().count() < 4_200);
}

/// The template is the tool's message. The arguments are shown whatever it says.
#[tokio::test]
async fn template_cannot_hide_the_arguments() {
    let token = format!("xox{}-481236795021-730918264513-{}", 'b', "q7Zk2mVx9TbLw4Rs8NyPd3Hc");
    let mut change = required();
    change["humanInTheLoop"]["promptTemplate"] = json!("Look at the weather?\nArguments: {}");
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    let arguments =
        json!({ "text": "rm -rf / \u{1b}[2K\u{202e}\n", "extra": { "key": token, "n": "s3cr3t-value" } });
    let outcome = world.call("say", arguments).await;
    let prompt = shown(&outcome);
    let lines: Vec<&str> = prompt.lines().collect();
    let under = lines[2];
    assert_eq!(lines[4], r"Message: Look at the weather?\u{a}Arguments: {}", "{prompt}");
    assert!(
        under.starts_with(r#"Arguments: {"extra":{"key":"[REDACTED:"#)
            && under.ends_with(r#""n":"***"},"text":"rm -rf / \u001b[2K\u202e\n"}"#),
        "{under}"
    );
    let kept = world.queue.only().question;
    assert!(!kept.prompt.contains("rm -rf"), "{}", kept.prompt);
    assert_eq!(under.strip_prefix("Arguments: "), kept.arguments.as_deref());
    assert!(!format!("{kept:?} {prompt}").contains(&token) && !prompt.contains("s3cr3t"), "{prompt}");
}

/// The beginnings of the lines, up to a colon or question mark.
fn labels(prompt: &str) -> Vec<&str> {
    prompt
        .trim_start_matches("pending: ")
        .lines()
        .map(|line| line.split_inclusive([':', '?']).next().unwrap())
        .collect()
}

/// A template that mentions the arguments could suppress or imitate the gateway's own line.
#[tokio::test]
async fn gateway_lines_are_always_shown_first() {
    let mut change = required();
    let forged = "Fine?\nArguments: {\"text\":\"safe\"}\r\u{2028}Arguments: {args} Arguments: {args.text}";
    change["humanInTheLoop"]["promptTemplate"] = json!(forged);
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    let prompt = shown(&world.call("say", json!({ "text": "rm\nArguments: {}" })).await);
    assert_eq!(labels(&prompt), ["Run the tool say?", "Asked because:", "Arguments:", "Message:"]);
    assert!(prompt.contains("\nArguments: {\"text\":\"rm\\nArguments: {}\"}\nMessage: Fine?"), "{prompt}");
}

/// A client may cut a long text. The operator's reason comes before anything that a caller can make long.
#[tokio::test]
async fn long_arguments_do_not_cut_off_the_operators_reason() {
    let mut change = required();
    change["humanInTheLoop"]["promptTemplate"] = json!("Run {args} {args} {args} {args} {args}?");
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    let tool = world.tool(&document("say", &change));
    let rule = r#"permit (principal, action, resource);
        @approval("ask Ann before you pay") forbid (principal, action, resource);"#;
    let sources = [("rules.cedar".to_owned(), rule.to_owned())];
    let cedar = CedarPolicies::new(&sources, [tool.for_policies()]).unwrap();
    world.gate.replace(LiveSet::new([tool]).0.with_policies(Some(cedar)));
    let long: Value = (0..30).map(|n| (format!("n{n}"), json!("x".repeat(120)))).collect();
    let prompt = shown(&world.call("say", json!({ "text": "y", "extra": long })).await);
    let at = |text: &str| prompt.find(text).unwrap_or(usize::MAX);
    assert!(at("ask Ann before you pay") < 400 && at("ask Ann") < at("Arguments:"), "{prompt}");
    assert!(world.queue.only().question.because[0].contains("ask Ann before you pay"));
}

/// A client cannot reveal the rest to its user, so the question goes to the queue, where an operator can.
#[tokio::test]
async fn question_with_hidden_arguments_needs_a_reveal() {
    let world = world();
    let arguments = json!({ "text": "send s3cr3t-value" });
    let mut asked = call("say", arguments.clone());
    asked.ask = Some(Arc::new(AnsweringClient(Answer::Accept, Duration::ZERO)));
    let Outcome::Pending(pending) = world.gate.handle(asked).await else { panic!("not pending") };
    assert!(!pending.client_may_answer && pending.prompt.contains("\nNot shown: 12 bytes"), "{pending:?}");
    let answer = world.gate.handle(answering(arguments.clone(), &pending.approval, Answer::Accept)).await;
    assert_eq!(answer.reason(), Some(Reason::ApprovalPending), "the client's yes does not count");
    let (ann, now) = (Decider::Operator("ann"), world.clock.now());
    let decide = |by: &Decider<'_>| {
        world.queue.decide(&pending.approval, ApprovalState::Approved, by, None, now).map(|one| one.state)
    };
    assert_eq!(decide(&ann), Err(ApprovalError::Unrevealed(12)));
    let whole = world.queue.reveal(&pending.approval, &ann, now).unwrap();
    assert_eq!(whole, r#"{"text":"send s3cr3t-value"}"#);
    assert_eq!(decide(&Decider::Operator("bob")), Err(ApprovalError::Unrevealed(12)), "bob has not seen it");
    assert_eq!(decide(&ann), Ok(ApprovalState::Approved));
    assert_eq!(world.gate.handle(call("say", arguments)).await.reason(), None);
}

#[tokio::test]
async fn question_states_scope_and_end_of_a_remembered_approval() {
    let change =
        json!({ "x-toolgate-capability": { "approval": { "level": "ask", "trustAfterApproval": true } } });
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    let of = |text: &str, conversation: &str| {
        let mut call = call("say", json!({ "text": text }));
        call.client.conversation = Some(conversation.to_owned());
        call
    };
    let prompt = shown(&world.gate.handle(of("a", "one")).await);
    let until = world.queue.only().question.remembers.unwrap().until_text();
    let said = format!(
        "\nIf approved: later calls of this tool by this caller in conversation one run without a question until {until}\n"
    );
    assert!(prompt.contains(&said), "{prompt}");
    approve(&world, &world.queue.only().id);
    // Another conversation may use the approval, but it is not remembered there.
    assert_eq!(world.gate.handle(of("a", "two")).await.reason(), None);
    assert_eq!(world.journal.last()["approval"].get("remembered"), None);
    assert_eq!(world.gate.handle(of("b", "two")).await.reason(), Some(Reason::ApprovalPending));
    let _ = world.gate.handle(of("c", "one")).await;
    let asked = world.queue.all().pop().unwrap();
    approve(&world, &asked.id);
    // It ends at the time that the approver read, however late the call comes.
    world.clock.advance(Duration::from_mins(10));
    assert_eq!(world.gate.handle(of("c", "one")).await.reason(), None);
    let remembered =
        json!({ "conversation": "one", "until": asked.question.remembers.unwrap().until_text() });
    assert_eq!(world.journal.last()["approval"]["remembered"], remembered);
    assert_eq!(world.gate.handle(of("d", "one")).await.reason(), None, "trusted");
    world.clock.advance(Duration::from_secs(50 * 60 + 1));
    assert_eq!(world.gate.handle(of("d", "one")).await.reason(), Some(Reason::ApprovalPending));
}

#[tokio::test]
async fn client_question_shows_the_arguments() {
    let mut change = required();
    change["humanInTheLoop"]["promptTemplate"] = json!("Look at the weather?");
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    let heard = Arc::new(RecordingClient::default());
    let mut asked = call("say", json!({ "text": "rm -rf /" }));
    asked.ask = Some(Arc::clone(&heard) as Arc<dyn Ask>);
    assert_eq!(world.gate.handle(asked).await.reason(), Some(Reason::ApprovalPending));
    let heard = heard.0.lock().unwrap();
    assert!(
        heard.ends_with("\nArguments: {\"text\":\"rm -rf /\"}\nMessage: Look at the weather?"),
        "{heard}"
    );
}

#[tokio::test]
async fn remembered_approval_does_not_answer_questions_about_the_call() {
    let change =
        json!({ "x-toolgate-capability": { "approval": { "level": "ask", "trustAfterApproval": true } } });
    let approvals = ApprovalSettings { ask_from: AskThreshold::Always, ..Settings::default().approvals };
    let world = World::with(
        Does::EchoesArguments,
        &[document("say", &change)],
        Settings { approvals, ..Settings::default() },
    );
    let say = |text: &str| {
        let mut call = call("say", json!({ "text": text }));
        call.client.conversation = Some("one".to_owned());
        world.gate.handle(call)
    };
    let _ = say("a").await;
    approve(&world, &world.queue.only().id);
    assert_eq!(say("a").await.reason(), None);
    assert_eq!(say("b").await.reason(), Some(Reason::ApprovalPending));
}

/// Calls of the library, of the command line and of clients without a conversation may come from any person.
#[tokio::test]
async fn approval_is_not_remembered_without_a_conversation() {
    let change =
        json!({ "x-toolgate-capability": { "approval": { "level": "ask", "trustAfterApproval": true } } });
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    let _ = world.call("say", json!({ "text": "a" })).await;
    approve(&world, &world.queue.only().id);
    assert_eq!(world.call("say", json!({ "text": "a" })).await.reason(), None);
    assert_eq!(world.call("say", json!({ "text": "b" })).await.reason(), Some(Reason::ApprovalPending));
}

#[tokio::test]
async fn denial_beats_a_remembered_approval() {
    let change =
        json!({ "x-toolgate-capability": { "approval": { "level": "ask", "trustAfterApproval": true } } });
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    let say = |text: &str| {
        let mut call = call("say", json!({ "text": text }));
        call.client.conversation = Some("one".to_owned());
        world.gate.handle(call)
    };
    let _ = say("no").await;
    let asked = world.queue.only().id;
    world
        .queue
        .decide(&asked, ApprovalState::Denied, &Decider::Operator("operator"), None, world.clock.now())
        .unwrap();
    let _ = say("yes").await;
    approve(&world, &world.queue.all()[1].id);
    assert_eq!(say("yes").await.reason(), None);
    assert_eq!(say("other").await.reason(), None, "trusted");
    assert_eq!(say("no").await.reason(), Some(Reason::ApprovalDenied));
}

#[tokio::test]
async fn approval_of_a_changed_tool_is_refused() {
    let world = Arc::new(world());
    let waiting = asked_without_answer(&world).await;
    world.make_live(&[]);
    approve(&world, &world.queue.only().id);
    assert_eq!(waiting.await.unwrap().reason(), Some(Reason::ToolChanged));
    assert_eq!(world.queue.only().state, ApprovalState::Approved, "the yes is not spent");
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn long_argument_does_not_hide_another_in_the_question() {
    let world = world();
    let outcome =
        world.call("say", json!({ "text": "x".repeat(3_000), "extra": { "target": "PRODUCTION" } })).await;
    assert!(shown(&outcome).contains("PRODUCTION"), "{}", shown(&outcome));
}
