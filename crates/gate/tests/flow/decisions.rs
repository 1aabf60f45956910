//! The journal records the decisions about a call that did not run, and who denied it.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolgate_gate::{Answer, ApprovalQueue, ApprovalState, ClientAnswer, Clock, Decider, LiveSet, Reason};
use toolgate_policy::{Arguments, CedarPolicies, when};

use crate::fakes::{A_THOUGHT, AnsweringClient, Does, Settings, SilentClient, World, call, document};

fn asking() -> World {
    let required = json!({ "humanInTheLoop": { "mode": "REQUIRED" } });
    World::new(Does::EchoesArguments, &[document("say", &required)])
}

fn deny(world: &World) {
    let id = world.queue.only().id;
    world
        .queue
        .decide(&id, ApprovalState::Denied, &Decider::Operator("operator"), None, world.clock.now())
        .unwrap();
}

/// `source: verdict` of each decision in the last record.
#[track_caller]
fn voices(world: &World) -> Vec<String> {
    world.assert_paired();
    let record = world.journal.last();
    let opinions = record["decisions"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    opinions.iter().map(|one| format!("{}: {}", text(&one["source"]), text(&one["verdict"]))).collect()
}

#[track_caller]
fn assert_asked(world: &World, state: &str, by: Option<&str>) {
    assert_eq!(voices(world), ["permissions: permit", "human_in_the_loop: ask"]);
    let mut expect = json!({ "id": world.queue.only().id.as_str(), "state": state });
    if let Some(by) = by {
        expect["by"] = json!(by);
    }
    assert_eq!(world.journal.last()["approval"], expect);
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn forbidden_call_is_recorded_with_its_decisions() {
    let settings = Settings { policy: Arc::new(when(|_, _, _| false, "not today")), ..Settings::default() };
    let world = World::with(Does::EchoesArguments, &[document("say", &json!({}))], settings);
    let outcome = world.call("say", json!({ "text": "hi" })).await;
    assert_eq!(outcome.reason(), Some(Reason::PolicyForbids));
    assert_eq!(voices(&world), ["permissions: permit", "policy: forbid"]);
    assert_eq!(world.journal.last()["decisions"][1]["why"], "not today");
    assert_eq!(world.journal.last().get("approval"), None);
}

/// A copy of large arguments would slow down every call, even without a policy.
#[tokio::test]
async fn policy_in_code_reads_the_arguments_of_the_run_without_a_copy() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let policy = {
        let seen = Arc::clone(&seen);
        let address = |args: &Arguments| args.get("text").and_then(Value::as_str).unwrap().as_ptr().addr();
        when(
            move |_, _, args| {
                seen.lock().unwrap().push(address(args));
                true
            },
            "never",
        )
    };
    let settings = Settings { policy: Arc::new(policy), ..Settings::default() };
    let world = World::with(Does::Returns(json!(1)), &[document("say", &json!({}))], settings);
    let arguments = json!({ "text": "hi" });
    let given = arguments["text"].as_str().unwrap().as_ptr().addr();
    let outcome = world.call("say", arguments).await;
    assert_eq!(outcome.reason(), None, "{outcome:?}");
    assert_eq!(*seen.lock().unwrap(), [given]);
}

#[tokio::test]
async fn pending_and_denied_calls_are_recorded_with_their_decisions() {
    let world = asking();
    let _ = world.call("say", json!({ "text": "hi" })).await;
    assert_asked(&world, "pending", None);
    deny(&world);
    let outcome = world.call("say", json!({ "text": "hi" })).await;
    assert_eq!(outcome.reason(), Some(Reason::ApprovalDenied));
    assert_asked(&world, "denied", Some("operator"));
}

#[tokio::test]
async fn denial_by_the_client_is_recorded_as_such() {
    let world = asking();
    let mut asked = call("say", json!({ "text": "hi" }));
    asked.ask = Some(Arc::new(AnsweringClient(Answer::Decline, A_THOUGHT)));
    assert_eq!(world.gate.handle(asked).await.reason(), Some(Reason::ApprovalDenied));
    assert_asked(&world, "denied", Some("client"));

    let world = asking();
    let _ = world.call("say", json!({ "text": "hi" })).await;
    let mut again = call("say", json!({ "text": "hi" }));
    again.answer =
        Some(ClientAnswer { approval: world.queue.only().id, answer: Answer::Decline, answered_after: None });
    assert_eq!(world.gate.handle(again).await.reason(), Some(Reason::ApprovalDenied));
    assert_asked(&world, "denied", Some("client"));
}

/// The actions of an operator and other events while the client does not answer.
async fn ends_in_silence(meanwhile: impl FnOnce(&World), expect: Reason) -> Arc<World> {
    let world = Arc::new(asking());
    let waiting = tokio::spawn({
        let world = Arc::clone(&world);
        async move {
            let mut asked = call("say", json!({ "text": "hi" }));
            asked.ask = Some(Arc::new(SilentClient));
            world.gate.handle(asked).await
        }
    });
    while world.queue.all().is_empty() {
        tokio::task::yield_now().await;
    }
    meanwhile(&world);
    assert_eq!(waiting.await.unwrap().reason(), Some(expect));
    world
}

#[tokio::test]
async fn denial_by_an_operator_is_recorded_while_the_client_is_silent() {
    let world = ends_in_silence(deny, Reason::ApprovalDenied).await;
    assert_asked(&world, "denied", Some("operator"));
}

#[tokio::test]
async fn late_approval_is_recorded_and_not_consumed() {
    let too_late = |world: &World| {
        world.make_live(&[]);
        let id = world.queue.only().id;
        world
            .queue
            .decide(&id, ApprovalState::Approved, &Decider::Operator("operator"), None, world.clock.now())
            .unwrap();
    };
    let world = ends_in_silence(too_late, Reason::ToolChanged).await;
    assert_asked(&world, "approved", Some("operator"));
}

#[tokio::test(start_paused = true)]
async fn unanswered_question_is_recorded() {
    let world = asking();
    let mut asked = call("say", json!({ "text": "hi" }));
    asked.ask = Some(Arc::new(SilentClient));
    assert_eq!(world.gate.handle(asked).await.reason(), Some(Reason::ApprovalTimeout));
    assert_asked(&world, "pending", None);
}

fn policies(world: &World, rules: &str) -> CedarPolicies {
    let tool = world.tool(&document("say", &json!({})));
    let sources = [("rules.cedar".to_owned(), rules.to_owned())];
    CedarPolicies::new(&sources, [tool.for_policies()]).unwrap()
}

/// The records of a call identify the policies that applied to it.
#[tokio::test]
async fn records_have_the_digest_of_the_policies() {
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    let _ = world.call("say", json!({ "text": "hi" })).await;
    assert_eq!(world.journal.last().get("policiesVersion"), None, "there are none");
    let of_the_tool = world.journal.last()["policyVersion"].clone();
    let mut seen = Vec::new();
    let rules = "permit(principal, action, resource);";
    for (rules, decision) in [
        (rules.to_owned(), "ALLOWED"),
        (
            format!(
                "{rules} forbid(principal, action == Action::\"say\", resource)
                when {{ context.input.text == \"hi\" }};"
            ),
            "DENIED",
        ),
    ] {
        let cedar = policies(&world, &rules);
        let digest = cedar.digest().to_owned();
        let tool = world.tool(&document("say", &json!({})));
        world.gate.replace(LiveSet::new([tool]).0.with_policies(Some(cedar)));
        let _ = world.call("say", json!({ "text": "hi" })).await;
        let record = world.journal.last();
        assert_eq!((&record["decision"], &record["policiesVersion"]), (&json!(decision), &json!(digest)));
        assert_eq!(record["policyVersion"], of_the_tool, "the tool's own has not changed");
        seen.push(digest);
    }
    assert_ne!(seen[0], seen[1]);
    // A reduced set keeps its policies.
    world.gate.retain(|_| true);
    let _ = world.call("say", json!({ "text": "hi" })).await;
    assert_eq!(world.journal.last()["policiesVersion"], json!(seen[1]));
}
