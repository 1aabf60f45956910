//! Output of calls whose result is withheld or partly redacted.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_gate::{
    Answer, ApprovalQueue as _, ApprovalState, Clock as _, Decider, Outcome, Reason, ReleasedCall,
};
use toolgate_spec::is_deceptive;

use crate::fakes::{A_THOUGHT, AnsweringClient, Does, World, call, document, shown};

const ROW: &str = r#"{"ssn":"078-05-1120","mail":"ann@example.org"}"#;

/// Well formed, and not in use anywhere. Recognised by its last six characters only.
fn token() -> String {
    format!("{}_{}", "ghp", "q7Zk2mVx9TbLw4Rs8NyPd3HcJf5GaE0QhQH1")
}

fn key_lines() -> Vec<String> {
    let body = ["rG3nmfZN/3yKJyF3GINhFLUTv7Zh0eLhjopfdLi+YuAzWLLazZACmtxyT/SDvrrS"; 5];
    let edge = |word: &str| format!("-----{word} PRIVATE KEY-----");
    let inside = body.iter().map(|line| (*line).to_owned());
    [edge("BEGIN")].into_iter().chain(inside).chain([edge("END")]).collect()
}

async fn released(does: Does, change: &Value) -> ReleasedCall {
    let world = World::new(does, &[document("say", change)]);
    match world.call("say", json!({ "text": "x" })).await {
        Outcome::Released(released) => released,
        other => panic!("{}", shown(&other)),
    }
}

/// With field rules, fields without a rule are not released, also not through an error message.
#[tokio::test]
async fn error_message_is_withheld_for_a_tool_with_field_rules() {
    let rules = json!({ "x-toolgate-outputPolicy": { ".name": "allow", "..ssn": "redact" } });
    for reason in [
        Reason::ToolFailed,
        Reason::CodeInvalid,
        Reason::NotData,
        Reason::CommandFailed,
        Reason::OutputUnreadable,
        // Denials of the jail are withheld too, because they name what the command tried to access.
        Reason::BlockedPathMade,
        Reason::Timeout,
        Reason::Memory,
        Reason::ResultTooLarge,
    ] {
        let world = World::new(Does::Fails(reason, ROW), &[document("say", &rules)]);
        let outcome = world.call("say", json!({ "text": "x" })).await;
        let Outcome::Failed(failed) = &outcome else { panic!("{}", shown(&outcome)) };
        assert_eq!(failed.reason, reason);
        assert!(failed.to_caller.contains("`outputPolicy`"), "{}", failed.to_caller);
        assert!(failed.to_caller.contains("`toolgate run`"), "{}", failed.to_caller);
        let record = world.journal.last();
        assert_eq!(record["reason"], reason.code());
        for told in [format!("{outcome:?}"), record.to_string()] {
            assert!(!told.contains("078-05") && !told.contains("ann@"), "{told}");
        }
    }
}

/// Tools without field rules show why they failed, with or without a schema. Messages of the gateway are never
/// withheld.
#[tokio::test]
async fn error_message_is_shown_for_other_tools() {
    let schema = json!({ "x-toolgate-output": { "type": "object", "properties": { "name": {} } } });
    for change in [json!({}), schema] {
        let fails = Does::Fails(Reason::ToolFailed, "no such page");
        let world = World::new(fails, &[document("say", &change)]);
        let outcome = world.call("say", json!({ "text": "x" })).await;
        assert_eq!(shown(&outcome), "execute.tool_failed: no such page");
        assert_eq!(world.journal.last()["message"], "no such page");
    }
    let rules = json!({ "x-toolgate-outputPolicy": { ".name": "allow" } });
    let fails = Does::Fails(Reason::MissingSecret, "`WEATHER_KEY` is not set");
    let world = World::new(fails, &[document("say", &rules)]);
    let outcome = world.call("say", json!({ "text": "x" })).await;
    // The operator learns the name, the caller does not.
    assert!(!shown(&outcome).contains("WEATHER_KEY"), "{}", shown(&outcome));
    assert!(shown(&outcome).starts_with("execute.missing_secret: a value that the tool needs"));
    assert_eq!(world.journal.last()["message"], "`WEATHER_KEY` is not set");
}

#[tokio::test]
async fn redacted_key_leaves_numbers_and_names_between_its_lines() {
    let lines = key_lines();
    let numbered: Vec<Value> =
        lines.iter().enumerate().map(|(n, line)| json!({ "n": n, "line": line, "ok": true })).collect();
    let schema = json!({ "type": "object", "required": ["lines"], "properties": { "lines": {
        "type": "array",
        "items": {
            "type": "object", "required": ["n", "line"], "additionalProperties": false,
            "properties": { "n": { "type": "integer" }, "line": { "type": "string" }, "ok": { "type": "boolean" } },
        },
    } } });
    let change = json!({ "x-toolgate-output": schema });
    let released = released(Does::Returns(json!({ "lines": numbered })), &change).await;
    let left = released.value["lines"].as_array().unwrap();
    assert_eq!(left.len(), lines.len());
    for (n, line) in left.iter().enumerate() {
        assert_eq!((&line["n"], &line["ok"]), (&json!(n), &json!(true)), "{line}");
        assert!(line["line"].as_str().unwrap().starts_with("[REDACTED:"), "{line}");
    }
    assert!(released.is_structured);
}

/// Clients reject structured content that does not fit the listed schema, so such a result is returned as text.
#[tokio::test]
async fn result_that_no_longer_fits_its_schema_is_text() {
    let change = json!({ "x-toolgate-output": { "type": "object", "properties": {
        "key": { "type": "string", "pattern": "^ghp_" }, "name": { "type": "string", "maxLength": 4 },
    } } });
    for (result, is_structured) in [
        (json!({ "key": token() }), false),
        (json!({ "name": "ab\u{200b}c" }), false),
        (json!({ "other": token(), "more": "\u{200b}" }), true),
        (json!({ "name": "abc" }), true),
    ] {
        let released = released(Does::Returns(result.clone()), &change).await;
        assert_eq!(released.is_structured, is_structured, "{result}");
        let is_told = released.warnings.iter().any(|warning| warning.code == "output.unstructured");
        assert_eq!(is_told, !is_structured, "{result}");
    }
}

/// An approver sees the arguments, and not what the tool will read.
#[tokio::test]
async fn approval_covers_only_secrets_in_the_arguments() {
    let leaky = json!({ "approval": { "level": "auto" }, "data": { "canLeakData": true } });
    let change = json!({ "x-toolgate-capability": leaky });
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    let _ = world.call("say", json!({ "text": "nothing of the kind" })).await;
    assert_eq!((world.fake.runs(), world.fake.approved_secrets.lock().unwrap().len()), (1, 0));
    let mut asked = call("say", json!({ "text": "store password = hunter22x please" }));
    asked.ask = Some(Arc::new(AnsweringClient(Answer::Accept, A_THOUGHT)));
    let Outcome::Pending(pending) = world.gate.handle(asked.clone()).await else { panic!("not pending") };
    let (ann, now) = (Decider::Operator("ann"), world.clock.now());
    assert!(world.queue.reveal(&pending.approval, &ann, now).unwrap().contains("hunter22x"));
    world.queue.decide(&pending.approval, ApprovalState::Approved, &ann, None, now).unwrap();
    let outcome = world.gate.handle(asked).await;
    assert!(matches!(outcome, Outcome::Released(_)), "{}", shown(&outcome));
    assert_eq!(*world.fake.approved_secrets.lock().unwrap(), ["hunter22x"]);
}

/// A cut secret is not found, and the missing part may be easy to guess.
#[tokio::test]
async fn names_and_paths_are_redacted_before_they_are_cut() {
    let world = World::new(Does::Returns(json!({})), &[document("say", &json!({}))]);
    let mut unknown = call(&format!("{}{}", "x".repeat(165), token()), json!({}));
    unknown.client.name = Some(format!("{}{}", "n".repeat(170), token()));
    let _ = world.gate.handle(unknown).await;
    let rules = json!({ "x-toolgate-outputPolicy": { ".name": "allow" } });
    let field = format!("{}{}", "k".repeat(163), token());
    let world_of_fields = World::new(Does::Returns(json!({ field: 1 })), &[document("say", &rules)]);
    let _ = world_of_fields.call("say", json!({ "text": "x" })).await;
    for record in world.journal.records().into_iter().chain(world_of_fields.journal.records()) {
        assert!(!record.to_string().contains("q7Zk2mVx9"), "{record}");
    }
    let record = world.journal.last();
    for name in [&record["tool"]["name"], &record["client"]["name"]] {
        assert!(name.as_str().unwrap().chars().count() <= 200, "{name}");
    }
    let told = &world_of_fields.journal.last()["response"]["redactedFields"][0];
    assert!(told.as_str().unwrap().contains("kkk"), "{told}");
}

#[tokio::test]
async fn refusal_escapes_control_and_invisible_characters() {
    let unseen = "a\u{202e}b\u{2066}c\u{200b}d\u{e0041}e\u{1b}[2J";
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    for (tool, arguments) in [
        (unseen, json!({ "text": "x" })),
        ("say", json!({ "text": "x", "count": unseen })),
        ("say", json!({ "text": "x", unseen: 1 })),
    ] {
        let outcome = world.call(tool, arguments).await;
        let Outcome::Refused(refused) = &outcome else { panic!("{}", shown(&outcome)) };
        let message = world.journal.last()["message"].as_str().unwrap().to_owned();
        for told in [&refused.to_caller, &refused.to_operator, &message] {
            assert!(!told.contains(is_deceptive), "{told:?}");
        }
        assert!(refused.to_caller.contains("\\u{202e}"), "{}", refused.to_caller);
    }
}
