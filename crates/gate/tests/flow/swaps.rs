//! Reloads: tools, policies and settings of a call always come from one configuration.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolgate_gate::{ApprovalSettings, ArgumentLimits, LiveSet, Reason};
use toolgate_policy::{Arguments, AskThreshold, Caller, Ruling, ToolPolicy};

use crate::fakes::{Does, Settings, World, document};

/// Runs an action once during a call, when the policy in code is called.
#[derive(Default)]
struct ActionDuringCall(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl ToolPolicy for ActionDuringCall {
    fn check(&self, _: &Caller, _: &str, _: &Arguments) -> Ruling {
        if let Some(happen) = self.0.lock().unwrap().take() {
            happen();
        }
        Ruling::Allow
    }
}

fn asking(ask_from: AskThreshold) -> ApprovalSettings {
    ApprovalSettings { ask_from, ..Settings::default().approvals }
}

fn set_of(world: &World, change: &Value) -> LiveSet {
    LiveSet::new([world.tool(&document("say", change))]).0
}

/// Before the reload, the gateway asks about every call; after it, the tool does.
#[tokio::test]
async fn reload_during_a_call_does_not_skip_the_approval() {
    let middle = Arc::<ActionDuringCall>::default();
    let settings = Settings {
        approvals: asking(AskThreshold::Always),
        policy: Arc::clone(&middle) as Arc<dyn ToolPolicy>,
        ..Settings::default()
    };
    let world = World::with(Does::EchoesArguments, &[document("say", &json!({}))], settings);
    let after = set_of(&world, &json!({ "humanInTheLoop": { "mode": "REQUIRED" } }));
    let gate = world.gate.clone();
    *middle.0.lock().unwrap() = Some(Box::new(move || {
        gate.replace_with_settings(after, asking(AskThreshold::Never), LIMITS);
    }));
    let outcome = world.call("say", json!({ "text": "hi" })).await;
    assert!(middle.0.lock().unwrap().is_none(), "the reload took place");
    assert_eq!(outcome.reason(), Some(Reason::ApprovalPending));
    let voices = world.journal.last()["decisions"].to_string();
    assert!(voices.contains("gateway") && !voices.contains("human_in_the_loop"), "{voices}");
    let outcome = world.call("say", json!({ "text": "ho" })).await;
    assert_eq!(outcome.reason(), Some(Reason::ApprovalPending));
    let voices = world.journal.last()["decisions"].to_string();
    assert!(voices.contains("human_in_the_loop") && !voices.contains("gateway"), "{voices}");
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn settings_stay_if_only_tools_change() {
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    let call = async || world.call("say", json!({ "text": "hi" })).await.reason();
    assert_eq!(call().await, None);
    let set = set_of(&world, &json!({}));
    let tight = ArgumentLimits { bytes: 5, ..LIMITS };
    world.gate.replace_with_settings(set, asking(AskThreshold::Always), tight);
    assert_eq!(call().await, Some(Reason::InputTooLarge));
    world.make_live(&[document("say", &json!({}))]);
    world.gate.retain(|_| true);
    assert_eq!(call().await, Some(Reason::InputTooLarge));
    world.gate.replace_with_settings(set_of(&world, &json!({})), asking(AskThreshold::Always), LIMITS);
    world.make_live(&[document("say", &json!({}))]);
    world.gate.retain(|_| true);
    assert_eq!(call().await, Some(Reason::ApprovalPending));
}

const LIMITS: ArgumentLimits = ArgumentLimits { bytes: 4_096, depth: 8 };
