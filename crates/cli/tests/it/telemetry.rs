//! Calls are exported to the configured collector with its headers, without arguments and results.

use serde_json::json;

use crate::{
    hook::Hook,
    place::{Place, Serving, token},
};

#[test]
fn calls_are_exported_to_the_collector() {
    let collector = Hook::showing(&json!({}));
    let mut place = Place::new();
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    place.set("COLLECTOR_HEADERS", "x-tenant=heron");
    place.configure(&format!(
        "metrics:\n  otlp:\n    endpoint: {}\n    headers_env: COLLECTOR_HEADERS\n    interval: 1s\n",
        collector.at("")
    ));
    let serving = Serving::start(&place);
    serving.call(&token, "word_count", &json!({ "text": "to be or not to be" }));
    let (mut traces, mut metrics) = (None, None);
    while traces.is_none() || metrics.is_none() {
        let (head, body) = collector.next();
        assert!(head.to_lowercase().contains("x-tenant: heron\r\n"), "{head}");
        assert!(!body.contains("to be or not"), "{body}");
        if head.starts_with("POST /v1/traces ") {
            traces = Some(body);
        } else if head.starts_with("POST /v1/metrics ") && body.contains("\"released\"") {
            metrics = Some(body);
        }
    }
    assert!(traces.unwrap().contains("word_count"));
    serving.stop();
}
