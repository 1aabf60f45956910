//! What leaves although the result does not, and what is left of a result when something was taken out of it?

use std::sync::Arc;

use serde_json::json;
use toolgate_gate::{Answer, Outcome, Reason};

use crate::fakes::{Does, Says, World, call, document, shown};

const ROW: &str = r#"{"ssn":"078-05-1120","mail":"ann@example.org"}"#;

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
    assert_eq!(shown(&outcome), "execute.missing_secret: `WEATHER_KEY` is not set");
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
    asked.ask = Some(Arc::new(Says(Answer::Accept)));
    let outcome = world.gate.handle(asked).await;
    assert!(matches!(outcome, Outcome::Released(_)), "{}", shown(&outcome));
    assert_eq!(*world.fake.agreed.lock().unwrap(), ["hunter22x"]);
}
