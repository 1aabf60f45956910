//! What is told of a result that does not fit its schema? Nothing that stands in it.

use serde_json::{Value, json};
use toolgate_gate::Shows;

use crate::fakes::{Does, Settings, World, document, shown};

const MAIL: &str = "ann@example.org";

/// Everything that caller, operator and journal are told of a result that does not fit.
#[track_caller]
fn told(outcome: &toolgate_gate::Outcome, world: &World) -> String {
    assert!(shown(outcome).starts_with("filter.output_shape"), "{}", shown(outcome));
    format!("{outcome:?} {:?}", world.journal.last())
}

#[tokio::test]
async fn a_result_that_does_not_fit_brings_nothing_personal_into_the_journal() {
    let rules = [
        json!({ "x-toolgate-piiFields": ["..mail", "..people"] }),
        json!({ "x-toolgate-outputPolicy": { ".name": "allow", ".mail": "mask" } }),
        // Nobody has to say what is personal: nothing is released, and the journal gets no copy.
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
            let settings = Settings { shows: Shows::Everything, ..Settings::default() };
            let world = World::with(Does::Returns(result.clone()), &[document("say", &change)], settings);
            let outcome = world.call("say", json!({ "text": "x" })).await;
            let told = told(&outcome, &world);
            assert!(!told.contains(MAIL), "{told}");
            world.assert_paired();
        }
    }
}

#[tokio::test]
async fn the_operator_is_told_which_rule_of_the_schema_is_broken() {
    let schema = json!({ "type": "object", "properties": { "mail": { "type": "integer" } } });
    let change = json!({ "x-toolgate-output": schema, "x-toolgate-piiFields": ["..mail"] });
    let world = World::new(Does::Returns(json!({ "mail": MAIL })), &[document("say", &change)]);
    // What a caller has put into a personal field hides none of it.
    let _ = world.call("say", json!({ "text": "x", "extra": { "mail": "integer" } })).await;
    assert_eq!(
        world.journal.last()["message"],
        "the result does not fit the output schema: `/properties/mail/type`: expected an integer, got a string"
    );
}
