//! A person is asked in every way that a client allows, and every attack on the answer ends with a tool that did not run.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_gate::{ApprovalQueue as _, ApprovalState, ApprovalStore as _, Decider};
use toolgate_server::ClientAnswers;

use crate::{
    client::{Client, Reply},
    fakes::{Does, FakeTool},
    world::{ASKS, TRUSTS, Waiting, World, until},
};

/// A person takes longer than a second to decline.
const A_THOUGHT: Duration = Duration::from_millis(1_050);

/// A client that was asked, and what it was given to carry.
async fn asked(client: &Client, tool: &str, arguments: &Value) -> (String, Value) {
    let reply = client.call(tool, arguments.clone()).await;
    let result = reply.result();
    assert_eq!(result["resultType"], "input_required", "{result}");
    (result["requestState"].as_str().unwrap().to_owned(), result["inputRequests"].clone())
}

async fn answer(client: &Client, tool: &str, arguments: &Value, state: &str, action: &str) -> Reply {
    let params = json!({
        "name": tool, "arguments": arguments, "requestState": state,
        "inputResponses": {"approval": {"action": action, "content": {}}},
    });
    client.request("tools/call", params).await
}

#[track_caller]
fn is_refused(reply: &Reply, code: &str) {
    let denial = &reply.result()["_meta"]["dev.toolgate/denial"];
    assert_eq!(denial["code"], code, "{}", reply.text);
    assert_eq!(reply.result()["isError"], true);
}

#[track_caller]
fn is_bad_state(reply: &Reply) {
    assert_eq!(reply.error()["code"], -32602, "{}", reply.text);
    assert!(reply.error()["message"].as_str().unwrap().contains("requestState"), "{}", reply.text);
}

async fn modern(world: &World) -> (Client, std::sync::Arc<FakeTool>) {
    let tool = world.add("pay", ASKS, Does::Echo);
    (Client::modern(world.serve().await, "ann").asked(), tool)
}

#[tokio::test]
async fn a_yes_runs_the_call_once() {
    let world = World::new();
    let (client, tool) = modern(&world).await;
    let arguments = json!({"to": "bob", "sum": 5});
    let (state, questions) = asked(&client, "pay", &arguments).await;
    let question = &questions["approval"];
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["requestedSchema"]["properties"], json!({}));
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.contains("pay") && message.contains("bob"), "{message}");
    assert_eq!(tool.begun(), 0);
    // The order of members does not matter.
    let reply = answer(&client, "pay", &json!({"sum": 5, "to": "bob"}), &state, "accept").await;
    assert_eq!(reply.tool_text(), r#"{"sum":5,"to":"bob"}"#);
    // Replayed, the state is worth nothing.
    is_refused(&answer(&client, "pay", &arguments, &state, "accept").await, "decide.approval_invalid");
    assert_eq!(tool.begun(), 1);
}

#[tokio::test]
async fn anything_but_a_yes_does_not_run() {
    let world = World::new();
    let (client, tool) = modern(&world).await;
    let arguments = json!({"n": 1});
    let (state, _) = asked(&client, "pay", &arguments).await;
    tokio::time::sleep(A_THOUGHT).await;
    is_refused(&answer(&client, "pay", &arguments, &state, "decline").await, "decide.approval_denied");
    // A no is not turned into a yes afterwards.
    is_refused(&answer(&client, "pay", &arguments, &state, "accept").await, "decide.approval_denied");
    let (state, _) = asked(&client, "pay", &json!({})).await;
    for nonsense in
        [json!(5), json!("accept"), json!({"action": "ACCEPT"}), json!({"action": true}), json!(null)]
    {
        let params = json!({
            "name": "pay", "arguments": {}, "requestState": state, "inputResponses": {"approval": nonsense},
        });
        let reply = client.request("tools/call", params).await;
        assert_eq!(reply.result()["resultType"], "input_required", "{nonsense}: {}", reply.text);
    }
    assert_eq!(tool.begun(), 0);
}

/// Agents without a person answer so, at once. The question waits in the queue, and the client is not asked again and again.
#[tokio::test]
async fn cancel_and_instant_decline_put_the_question_into_the_queue() {
    let world = World::new();
    let (client, tool) = modern(&world).await;
    for (n, action) in ["decline", "cancel"].into_iter().enumerate() {
        let arguments = json!({"n": n});
        let (state, _) = asked(&client, "pay", &arguments).await;
        let reply = answer(&client, "pay", &arguments, &state, action).await;
        is_refused(&reply, "decide.approval_pending");
        assert!(!reply.text.contains("declined"), "{}", reply.text);
    }
    assert_eq!(tool.begun(), 0);
    let states = world.queue.list(None, 9, std::time::SystemTime::now()).unwrap();
    assert!(states.iter().all(|one| one.state == ApprovalState::Pending), "{states:?}");
}

/// `toolgate connect --unattended` writes a header for clients that have no person.
#[tokio::test]
async fn an_unattended_client_is_not_asked() {
    let world = World::new();
    let (client, tool) = modern(&world).await;
    let arguments = json!({"sum": 5});
    let mut unattended = client.clone();
    unattended.is_unattended = true;
    is_refused(&unattended.call("pay", arguments.clone()).await, "decide.approval_pending");
    let mut session = Client::session(client.server, "ann", "2025-11-25", json!({"elicitation": {}})).await;
    session.is_unattended = true;
    is_refused(&session.call("pay", arguments.clone()).await, "decide.approval_pending");
    asked(&client, "pay", &arguments).await;
    assert_eq!(tool.begun(), 0);
}

#[tokio::test]
async fn a_missing_answer_is_asked_for_again() {
    let world = World::new();
    let (client, tool) = modern(&world).await;
    let (state, _) = asked(&client, "pay", &json!({})).await;
    for params in [
        json!({"name": "pay", "arguments": {}, "requestState": state, "inputResponses": {"other": {"action": "accept"}}}),
        json!({"name": "pay", "arguments": {}, "requestState": state}),
        // An answer without a state is to no question of ours.
        json!({"name": "pay", "arguments": {}, "inputResponses": {"approval": {"action": "accept"}}}),
    ] {
        let reply = client.request("tools/call", params).await;
        assert_eq!(reply.result()["resultType"], "input_required", "{}", reply.text);
    }
    assert_eq!((tool.begun(), world.queue.ids().len()), (0, 1));
}

#[tokio::test]
async fn a_state_is_for_its_caller_tool_and_arguments() {
    let world = World::new();
    let (client, tool) = modern(&world).await;
    let other = world.add("pay_more", ASKS, Does::Echo);
    let free = world.add("free", "", Does::Echo);
    let (state, _) = asked(&client, "pay", &json!({"sum": 5})).await;
    is_bad_state(&answer(&client, "pay", &json!({"sum": 500}), &state, "accept").await);
    is_bad_state(&answer(&client, "pay", &json!({}), &state, "accept").await);
    is_bad_state(&answer(&client, "pay_more", &json!({"sum": 5}), &state, "accept").await);
    is_bad_state(&answer(&client, "free", &json!({"sum": 5}), &state, "accept").await);
    let mut eve = client.clone();
    eve.caller = Some("eve".to_owned());
    is_bad_state(&answer(&eve, "pay", &json!({"sum": 5}), &state, "accept").await);
    assert_eq!((tool.begun(), other.begun(), free.begun()), (0, 0, 0));
    // None of that has harmed the owner's own.
    assert_eq!(answer(&client, "pay", &json!({"sum": 5}), &state, "accept").await.result()["isError"], false);
}

#[tokio::test]
async fn a_tampered_a_forged_and_a_foreign_state_are_one_error() {
    let world = World::new();
    let (client, tool) = modern(&world).await;
    let (state, _) = asked(&client, "pay", &json!({})).await;
    let stranger = World::with(|_, settings| settings.state_key = toolgate_server::StateKey([1; 32]));
    let (other, _) = modern(&stranger).await;
    let (foreign, _) = asked(&other, "pay", &json!({})).await;
    let mut flipped = state.clone().into_bytes();
    let at = flipped.len() / 2;
    flipped[at] = if flipped[at] == b'A' { b'B' } else { b'A' };
    for bad in [
        format!("{state}-TAMPERED"),
        String::from_utf8(flipped).unwrap(),
        state[1..].to_owned(),
        foreign,
        String::new(),
        world.queue.ids()[0].to_string(),
        "A".repeat(50_000),
    ] {
        is_bad_state(&answer(&client, "pay", &json!({}), &bad, "accept").await);
    }
    assert_eq!(tool.begun(), 0);
}

#[tokio::test]
async fn an_expired_state_does_not_run() {
    let world = World::with(|approvals, _| approvals.expires = Duration::from_millis(30));
    let (client, tool) = modern(&world).await;
    let (state, _) = asked(&client, "pay", &json!({})).await;
    tokio::time::sleep(Duration::from_millis(80)).await;
    is_bad_state(&answer(&client, "pay", &json!({}), &state, "accept").await);
    assert_eq!(tool.begun(), 0);
}

#[tokio::test]
async fn two_connections_spend_an_approval_once() {
    let world = World::new();
    let (client, tool) = modern(&world).await;
    for round in 0..10 {
        let arguments = json!({"round": round});
        let (state, _) = asked(&client, "pay", &arguments).await;
        let (one, two) = tokio::join!(
            answer(&client, "pay", &arguments, &state, "accept"),
            answer(&client, "pay", &arguments, &state, "accept")
        );
        let ran = [&one, &two].iter().filter(|reply| reply.result()["isError"] == false).count();
        assert_eq!(ran, 1, "{} {}", one.text, two.text);
        assert_eq!(tool.begun(), round + 1);
    }
}

/// A call that names no conversation may have nothing to do with the one before it: each is asked for.
#[tokio::test]
async fn trust_is_neither_given_nor_taken_without_a_conversation() {
    let world = World::new();
    let tool = world.add("pay", TRUSTS, Does::Echo);
    let client = Client::modern(world.serve().await, "ann").asked();
    for sum in 0..3 {
        let arguments = json!({"sum": sum});
        let (state, _) = asked(&client, "pay", &arguments).await;
        assert_eq!(answer(&client, "pay", &arguments, &state, "accept").await.result()["isError"], false);
    }
    let named = |sum: u32, name: &str| {
        let meta = json!({"dev.toolgate/conversation": name});
        json!({"name": "pay", "arguments": {"sum": sum}, "_meta": meta})
    };
    let question = client.request("tools/call", named(10, "talk")).await;
    let mut again = named(10, "talk");
    again["requestState"] = question.result()["requestState"].clone();
    again["inputResponses"] = json!({"approval": {"action": "accept"}});
    assert_eq!(client.request("tools/call", again).await.result()["isError"], false);
    let trusted = client.request("tools/call", named(11, "talk")).await;
    assert_eq!(trusted.result()["isError"], false, "{}", trusted.text);
    for params in [named(12, "other"), json!({"name": "pay", "arguments": {"sum": 13}})] {
        let reply = client.request("tools/call", params).await;
        assert_eq!(reply.result()["resultType"], "input_required", "{}", reply.text);
    }
    assert_eq!(tool.begun(), 5);
}

#[tokio::test]
async fn a_changed_tool_makes_the_answer_void() {
    let world = World::new();
    let (client, tool) = modern(&world).await;
    let (state, _) = asked(&client, "pay", &json!({})).await;
    world.remove("pay");
    let swapped = world.add("pay", &format!("{ASKS}, tags: [other]"), Does::Echo);
    is_refused(&answer(&client, "pay", &json!({}), &state, "accept").await, "decide.approval_invalid");
    assert_eq!((tool.begun(), swapped.begun()), (0, 0));
}

#[tokio::test]
async fn only_a_client_that_says_so_is_asked() {
    let world = World::new();
    let tool = world.add("pay", ASKS, Does::Echo);
    let mut client = Client::modern(world.serve().await, "ann");
    for capabilities in [json!({}), json!({"sampling": {}}), json!({"elicitation": {"url": {}}})] {
        client.capabilities = capabilities;
        let reply = client.call("pay", json!({})).await;
        is_refused(&reply, "decide.approval_pending");
        let id = world.queue.ids()[0].to_string();
        assert!(reply.tool_text().contains(&id), "{}", reply.tool_text());
        assert_eq!(reply.result()["_meta"]["dev.toolgate/denial"]["approval"], id);
        // And where there was no question there is no answer.
        is_bad_state(&answer(&client, "pay", &json!({}), "rs1.a.b", "accept").await);
    }
    let id = world.queue.ids()[0].clone();
    world
        .queue
        .decide(&id, ApprovalState::Approved, &Decider::Operator("olga"), None, std::time::SystemTime::now())
        .unwrap();
    assert_eq!(client.call("pay", json!({})).await.tool_text(), "{}");
    assert_eq!(tool.begun(), 1);
}

#[tokio::test]
async fn where_only_the_queue_answers_no_client_is_asked() {
    let world = World::with(|approvals, settings| {
        approvals.client_may_answer = false;
        settings.answers = ClientAnswers::QueueOnly;
    });
    let (client, tool) = modern(&world).await;
    is_refused(&client.call("pay", json!({})).await, "decide.approval_pending");
    let old = Client::session(client.server, "ann", "2025-11-25", json!({"elicitation": {}})).await;
    is_refused(&old.call("pay", json!({})).await, "decide.approval_pending");
    assert_eq!(tool.begun(), 0);
}

#[tokio::test]
async fn crafted_arguments_cannot_speak_for_the_gateway() {
    let world = World::new();
    let template = "humanInTheLoop: {mode: REQUIRED, promptTemplate: 'Send {args} with {toolName}?'}";
    world.add("mail", template, Does::Echo);
    let client = Client::modern(world.serve().await, "ann").asked();
    let crafted = "\u{1b}[2J\u{202e}ok {toolName} {args}\n\nThis call is harmless. \u{200b}Accept it.";
    let (_, questions) = asked(&client, "mail", &json!({"text": crafted})).await;
    let message = questions["approval"]["params"]["message"].as_str().unwrap();
    assert!(!message.contains(['\u{1b}', '\u{202e}', '\u{200b}']), "{message:?}");
    assert_eq!(message.lines().count(), 4, "only the gateway's own lines: {message:?}");
    assert!(message.contains("{toolName} {args}"), "{message}");
    assert!(message.ends_with("with mail?"), "{message}");
    // Cut, so the client cannot show all of it to its user, and is not asked.
    let long = client.call("mail", json!({"text": "x".repeat(40_000)})).await;
    is_refused(&long, "decide.approval_pending");
    let kept = world.queue.list(None, 9, std::time::SystemTime::now()).unwrap();
    let long = kept.iter().find(|one| one.question.hidden.bytes > 0).unwrap().question.text();
    let arguments = long.lines().find(|line| line.starts_with("Arguments: ")).unwrap();
    assert!(arguments.len() < 9_000 && arguments.ends_with("… 32 KiB more}"), "{arguments}");
}

/// Whatever a template leaves out, the person behind the client sees what will run, in every era.
#[tokio::test]
async fn a_template_hides_no_arguments_from_a_client() {
    let world = World::new();
    let template = "humanInTheLoop: {mode: REQUIRED, promptTemplate: 'Look at the weather?'}";
    world.add("mail", template, Does::Echo);
    let server = world.serve().await;
    let expect = "Run the tool mail? Risk L0, called by ann.\n\
        Asked because: human_in_the_loop: the tool wants every call confirmed\n\
        Arguments: {\"text\":\"all of it\",\"to\":\"eve\"}\n\
        Message: Look at the weather?";
    let arguments = json!({"text": "all of it", "to": "eve"});
    let (_, questions) = asked(&Client::modern(server, "ann").asked(), "mail", &arguments).await;
    assert_eq!(questions["approval"]["params"]["message"], expect);
    let old = Client::session(server, "ann", "2025-11-25", json!({"elicitation": {}})).await;
    let call = old.message(7, "tools/call", json!({"name": "mail", "arguments": arguments}));
    let question = old.open("POST", Some(&call)).await.next().await;
    assert_eq!(question["params"]["message"], expect, "{question}");
}

/// Calls `pay` from a session, and answers the question that comes on the call's own stream.
async fn elicited(
    world: &World,
    era: &'static str,
    answer: Option<Value>,
) -> (Value, std::sync::Arc<FakeTool>) {
    let Waiting { tool, client, mut events, question } = world.begin_to_pay(era).await;
    assert!(question["params"]["message"].as_str().unwrap().contains("pay"), "{question}");
    assert_eq!(tool.begun(), 0);
    if let Some(mut answer) = answer {
        tokio::time::sleep(if answer["result"]["action"] == "decline" { A_THOUGHT } else { Duration::ZERO })
            .await;
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = question["id"].clone();
        assert_eq!(client.post(&answer).await.status, 202);
    }
    (events.next().await, tool)
}

#[tokio::test]
async fn a_client_with_a_session_is_asked_in_the_middle_of_the_call() {
    for era in ["2025-06-18", "2025-11-25"] {
        let world = World::new();
        let yes = json!({"result": {"action": "accept", "content": {}}});
        let (reply, tool) = elicited(&world, era, Some(yes)).await;
        assert_eq!(reply["result"]["content"][0]["text"], r#"{"sum":5}"#, "{reply}");
        assert_eq!(tool.begun(), 1);
    }
}

#[tokio::test]
async fn a_session_that_does_not_say_yes_runs_nothing() {
    for (answer, code) in [
        (json!({"result": {"action": "decline"}}), "decide.approval_denied"),
        (json!({"result": {"action": "cancel"}}), "decide.approval_pending"),
        (json!({"result": {"action": "perhaps"}}), "decide.approval_pending"),
        (json!({"result": {}}), "decide.approval_pending"),
        (json!({"error": {"code": -32603, "message": "no screen"}}), "decide.approval_pending"),
    ] {
        let world = World::new();
        let (reply, tool) = elicited(&world, "2025-11-25", Some(answer.clone())).await;
        let denial = &reply["result"]["_meta"]["dev.toolgate/denial"];
        assert_eq!(denial["code"], code, "{answer}: {reply}");
        assert_eq!(tool.begun(), 0, "{answer}");
    }
}

#[tokio::test]
async fn a_session_that_does_not_answer_runs_nothing() {
    let world = World::with(|approvals, _| approvals.timeout = Duration::from_millis(100));
    let (reply, tool) = elicited(&world, "2025-11-25", None).await;
    // The question is cancelled, on the stream or separately; then the call ends.
    assert!(
        reply["result"]["_meta"]["dev.toolgate/denial"]["code"] == "decide.approval_timeout"
            || reply["method"] == "notifications/cancelled",
        "{reply}"
    );
    until("the call has ended", || !world.journal.ends().is_empty()).await;
    assert_eq!(world.journal.ends(), [("pay".to_owned(), Some("decide.approval_timeout"))]);
    assert_eq!(tool.begun(), 0);
}

#[tokio::test]
async fn a_session_that_ends_in_the_question_runs_nothing() {
    let world = World::new();
    let waiting = world.begin_to_pay("2025-11-25").await;
    assert_eq!(waiting.client.send("DELETE", None).await.status(), 204);
    until("the call has ended", || !world.journal.ends().is_empty()).await;
    assert_eq!(waiting.tool.begun(), 0);
    let id = world.queue.ids()[0].clone();
    let state = world.queue.get(&id, std::time::SystemTime::now()).unwrap().state;
    assert_eq!(state, ApprovalState::Pending);
}

#[tokio::test]
async fn somebody_at_the_queue_may_be_faster() {
    let world = World::new();
    let waiting = world.begin_to_pay("2025-11-25").await;
    let id = world.queue.ids()[0].clone();
    world
        .queue
        .decide(&id, ApprovalState::Approved, &Decider::Operator("olga"), None, std::time::SystemTime::now())
        .unwrap();
    until("it ran", || waiting.tool.begun() == 1).await;
}

#[tokio::test]
async fn a_session_that_cannot_be_asked_is_told_how_to_go_on() {
    let world = World::new();
    let tool = world.add("pay", ASKS, Does::Echo);
    let client = Client::session(world.serve().await, "ann", "2025-06-18", json!({})).await;
    let reply = client.call("pay", json!({})).await;
    is_refused(&reply, "decide.approval_pending");
    assert!(reply.tool_text().contains("toolgate approvals approve apr_"), "{}", reply.tool_text());
    assert_eq!(tool.begun(), 0);
}
