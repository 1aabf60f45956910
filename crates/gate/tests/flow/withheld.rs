//! What leaves although the result does not, and what is left of a result when something was taken out of it?

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_gate::{
    Answer, ApprovalQueue as _, ApprovalState, Clock as _, Decider, Outcome, Reason, Released,
};
use toolgate_spec::is_deceptive;

use crate::fakes::{A_THOUGHT, Does, Says, World, call, document, shown};

const ROW: &str = r#"{"ssn":"078-05-1120","mail":"ann@example.org"}"#;

/// Well formed, and nobody's: told by its last six characters, without which it is letters.
fn token() -> String {
    format!("{}_{}", "ghp", "q7Zk2mVx9TbLw4Rs8NyPd3HcJf5GaE0QhQH1")
}

fn key_lines() -> Vec<String> {
    let body = ["rG3nmfZN/3yKJyF3GINhFLUTv7Zh0eLhjopfdLi+YuAzWLLazZACmtxyT/SDvrrS"; 5];
    let edge = |word: &str| format!("-----{word} PRIVATE KEY-----");
    let inside = body.iter().map(|line| (*line).to_owned());
    [edge("BEGIN")].into_iter().chain(inside).chain([edge("END")]).collect()
}

async fn released(does: Does, change: &Value) -> Released {
    let world = World::new(does, &[document("say", change)]);
    match world.call("say", json!({ "text": "x" })).await {
        Outcome::Released(released) => released,
        other => panic!("{}", shown(&other)),
    }
}

/// With rules about fields, what no rule names does not leave; nor does it by failing.
#[tokio::test]
async fn a_tool_with_rules_about_fields_says_nothing_in_failing() {
    let rules = json!({ "x-toolgate-outputPolicy": { ".name": "allow", "..ssn": "redact" } });
    for reason in [
        Reason::ToolFailed,
        Reason::CodeInvalid,
        Reason::NotData,
        Reason::CommandFailed,
        Reason::OutputUnreadable,
        // What the jail refused goes with these, and names what the command was after.
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

/// Whoever has no such rules, be it with a schema, says why it failed; and the gateway's own words are never withheld.
#[tokio::test]
async fn other_tools_and_the_gateway_say_why() {
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
async fn a_key_between_numbers_and_names_leaves_them_as_they_are() {
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

/// A client that was told a schema refuses what does not fit it; so such a result comes as text.
#[tokio::test]
async fn what_no_longer_fits_its_schema_is_no_structured_content() {
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

/// Whoever says yes is shown the call, and nothing of what the tool will read.
#[tokio::test]
async fn a_yes_is_for_the_values_in_the_arguments() {
    let leaky = json!({ "approval": { "level": "auto" }, "data": { "canLeakData": true } });
    let change = json!({ "x-toolgate-capability": leaky });
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    let _ = world.call("say", json!({ "text": "nothing of the kind" })).await;
    assert_eq!((world.fake.runs(), world.fake.agreed.lock().unwrap().len()), (1, 0));
    let mut asked = call("say", json!({ "text": "store password = hunter22x please" }));
    asked.ask = Some(Arc::new(Says(Answer::Accept, A_THOUGHT)));
    let Outcome::Pending(pending) = world.gate.handle(asked.clone()).await else { panic!("not pending") };
    let (ann, now) = (Decider::Operator("ann"), world.clock.now());
    assert!(world.queue.reveal(&pending.approval, &ann, now).unwrap().contains("hunter22x"));
    world.queue.decide(&pending.approval, ApprovalState::Approved, &ann, None, now).unwrap();
    let outcome = world.gate.handle(asked).await;
    assert!(matches!(outcome, Outcome::Released(_)), "{}", shown(&outcome));
    assert_eq!(*world.fake.agreed.lock().unwrap(), ["hunter22x"]);
}

/// Half of a secret is not found, and is enough for whoever can reckon the rest.
#[tokio::test]
async fn names_and_paths_are_looked_through_before_they_are_cut() {
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
async fn a_refusal_repeats_nothing_that_acts_or_that_nobody_sees() {
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
