//! Alerts are delivered once, and a webhook that does not answer delays no call.

use std::{
    net::TcpListener,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    hook::Hook,
    place::{Place, Serving, token},
};

#[test]
fn alert_is_sent_once_without_call_data() {
    let hook = Hook::answering("204 No Content");
    let place = place_with(&hook.at("/hook"));
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    let result = serving.call(&token, "say", &json!({ "text": "launch the heron" }));
    assert_eq!(result["content"][0]["text"], "launch the heron!");
    let (head, body) = hook.next();
    assert!(head.starts_with("POST /hook HTTP/1.1\r\n"), "{head}");
    let alert: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(alert["callId"], result["_meta"]["dev.toolgate/callId"]);
    let told = ["kind", "tool", "outcome"].map(|key| alert[key].as_str().unwrap());
    assert_eq!(told, ["alert", "say", "released"]);
    assert_eq!(alert["alerts"], json!(["launch"]));
    assert!(!body.contains("heron"), "{body}");
    serving.call(&token, "say", &json!({ "text": "hello" }));
    serving.stop();
    assert_eq!(hook.rest(), Vec::<String>::new());
    assert_eq!(not_delivered(&place, "journal"), Vec::<Value>::new());
}

#[test]
fn refused_alert_is_retried_and_then_recorded() {
    let hook = Hook::answering("503 Service Unavailable");
    let place = place_with(&hook.at("/hook"));
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    let result = serving.call(&token, "say", &json!({ "text": "launch" }));
    let bodies = [hook.next().1, hook.next().1, hook.next().1];
    assert_eq!((&bodies[0], &bodies[1]), (&bodies[1], &bodies[2]));
    let end = Instant::now() + PATIENCE;
    while not_delivered(&place, "journal").is_empty() {
        assert!(Instant::now() < end, "nothing is written down");
        thread::sleep(Duration::from_millis(20));
    }
    serving.stop();
    let lost = not_delivered(&place, "journal");
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!(lost[0]["callId"], result["_meta"]["dev.toolgate/callId"]);
    assert_eq!(lost[0]["message"], "the webhook answered 503");
    assert_eq!(hook.rest(), Vec::<String>::new());
}

/// The retries would take minutes.
#[test]
fn silent_webhook_delays_neither_calls_nor_shutdown() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = place_with(&format!("http://{}/hook", silent.local_addr().unwrap()));
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    for _ in 0..5 {
        let result = serving.call(&token, "say", &json!({ "text": "launch" }));
        assert_eq!(result["content"][0]["text"], "launch!");
    }
    serving.stop();
    let lost = not_delivered(&place, "journal");
    assert_eq!(lost.len(), 5, "none is lost unseen: {lost:?}");
    assert!(place.ok(&["audit", "verify"]).contains("intact"));
}

#[test]
fn call_command_ends_after_its_alert_is_delivered() {
    let hook = Hook::answering("200 OK");
    let place = place_with(&hook.at("/hook"));
    place.ok(&["call", "say", "text=launch"]);
    assert_eq!(serde_json::from_str::<Value>(&hook.next().1).unwrap()["tool"], "say");
    assert_eq!(hook.rest(), Vec::<String>::new());
}

fn place_with(url: &str) -> Place {
    let place = Place::new();
    place.configure(&format!("audit:\n  webhook:\n    url: {url}\n"));
    place.write_tool("say", &json!({ "x-toolgate-capability": { "audit": { "alertOn": ["launch"] } } }));
    place.ok(&["publish", "say"]);
    place
}

fn not_delivered(place: &Place, folder: &str) -> Vec<Value> {
    let mut records = place.journal_so_far(folder);
    records.retain(|record| record["kind"] == "alert.not_delivered");
    records
}

/// A guard against hanging, not a measurement.
const PATIENCE: Duration = Duration::from_mins(1);
