//! A result that does not fit its schema: no message contains any of its content.

use serde_json::{Value, json};
use toolgate_gate::JournalDetail;

use crate::fakes::{Does, Settings, World, document, shown};

const MAIL: &str = "ann@example.org";

/// All messages to caller, operator and journal about a result that does not fit.
#[track_caller]
fn told(outcome: &toolgate_gate::Outcome, world: &World) -> String {
    assert!(shown(outcome).starts_with("filter.output_shape"), "{}", shown(outcome));
    format!("{outcome:?} {:?}", world.journal.last())
}

#[tokio::test]
async fn result_that_does_not_fit_is_not_recorded() {
    let rules = [
        json!({ "x-toolgate-piiFields": ["..mail", "..people"] }),
        json!({ "x-toolgate-outputPolicy": { ".name": "allow", ".mail": "mask" } }),
        // No field is declared personal here: nothing is released, and the journal gets no copy.
        json!({}),
    ];
    let by_type = json!({ "type": "object", "properties": { "mail": { "type": "integer" } } });
    let misfits: [(Value, Value); 4] = [
        (by_type, json!({ "mail": MAIL })),
        (
            json!({ "additionalProperties": { "additionalProperties": { "type": "integer" } } }),
            json!({ "people": { MAIL: "x" } }),
        ),
        (
            json!({ "properties": { "people": { "propertyNames": { "maxLength": 3 } } } }),
            json!({ "people": { MAIL: "x" } }),
        ),
        (json!({ "additionalProperties": false }), json!({ MAIL: "x" })),
    ];
    for rule in &rules {
        for (schema, result) in &misfits {
            let mut change = rule.clone();
            change["x-toolgate-output"] = schema.clone();
            change["x-toolgate-output"]["type"] = json!("object");
            let settings = Settings { journal_detail: JournalDetail::Everything, ..Settings::default() };
            let world = World::with(Does::Returns(result.clone()), &[document("say", &change)], settings);
            let outcome = world.call("say", json!({ "text": "x" })).await;
            let told = told(&outcome, &world);
            assert!(!told.contains(MAIL), "{told}");
            world.assert_paired();
        }
    }
}

#[tokio::test]
async fn operator_message_names_the_violated_schema_rule() {
    let schema = json!({ "type": "object", "properties": { "mail": { "type": "integer" } } });
    let change = json!({ "x-toolgate-output": schema, "x-toolgate-piiFields": ["..mail"] });
    let world = World::new(Does::Returns(json!({ "mail": MAIL })), &[document("say", &change)]);
    // Personal fields do not hide the rule.
    let _ = world.call("say", json!({ "text": "x", "extra": { "mail": "integer" } })).await;
    assert_eq!(
        world.journal.last()["message"],
        "the result does not fit the output schema: `/properties/mail/type`: expected an integer, got a string"
    );
}
