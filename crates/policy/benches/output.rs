//! Compares the cost of the output policy with that of parsing the same bytes with `serde_json`, alternating in one loop.
//! The result has many records: as a list, whose items share their paths; by number, with a path each; and as a flat map.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and fails loudly"
)]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use toolgate_policy::OutputPolicy;
use toolgate_spec::{
    FieldPattern,
    model::{Governance, OutputAction, OutputRule},
};

fn main() {
    let items: Vec<Value> = (0..5_000).map(item).collect();
    let by_number: Map<String, Value> =
        items.iter().enumerate().map(|(number, item)| (format!("customer-{number}"), item.clone())).collect();
    let flat: Map<String, Value> =
        (0..50_000).map(|number| (format!("field-{number}"), json!("Calls on Mondays"))).collect();
    measure("a list of records", &rules(".items[]"), &json!({ "items": items, "total": 5_000 }), 5);
    measure("records by number", &rules(".items.*"), &json!({ "items": by_number, "total": 5_000 }), 200);
    measure("a flat map", &rules(".items[]"), &Value::Object(flat.clone()), 200);
    let allowed = [rules(".items[]"), vec![rule(".*", OutputAction::Allow)]].concat();
    measure("a flat map that leaves", &allowed, &Value::Object(flat), 0);
}

/// Rules of every kind. `each` names a record.
fn rules(each: &str) -> Vec<OutputRule> {
    vec![
        rule(&format!("{each}.id"), OutputAction::Allow),
        rule(&format!("{each}.name"), OutputAction::Allow),
        rule(&format!("{each}.email"), OutputAction::Mask),
        rule(&format!("{each}.address"), OutputAction::Allow),
        rule(&format!("{each}.address.street"), OutputAction::Redact),
        rule("..ssn", OutputAction::Redact),
        rule("*.note", OutputAction::Allow),
        rule(".total", OutputAction::Allow),
    ]
}

fn rule(pattern: &str, action: OutputAction) -> OutputRule {
    OutputRule { pattern: FieldPattern::parse(pattern).unwrap(), action }
}

fn measure(what: &str, rules: &[OutputRule], document: &Value, expect_told: usize) {
    let governance = Governance { output_policy: Some(rules.to_vec()), ..Governance::default() };
    let policy = OutputPolicy::of(&governance);
    let text = document.to_string();
    let (mut parsing, mut filtering) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        let begin = Instant::now();
        let value: Value = serde_json::from_str(&text).unwrap();
        parsing.push(begin.elapsed());
        let begin = Instant::now();
        let (value, redacted) = policy.apply(value);
        filtering.push(begin.elapsed());
        assert_eq!(redacted.len(), expect_told, "{redacted:?}");
        black_box(value);
    }
    let (parsing, filtering) = (median(&mut parsing), median(&mut filtering));
    let ratio = filtering.as_secs_f64() / parsing.as_secs_f64();
    println!("{what}, {} bytes: parsed in {parsing:?}, filtered in {filtering:?}", text.len());
    let verdict = if ratio <= 2.0 { "met" } else { "MISSED" };
    println!("  filter / parse {ratio:>8.2} × (goal ≤ 2: {verdict})");
}

fn item(number: usize) -> Value {
    json!({
        "id": number, "name": format!("Ann Example {number}"), "email": format!("ann{number}@example.com"),
        "ssn": "078-05-1120", "note": "Calls on Mondays; prefers letters. ".repeat(2),
        "address": { "street": "Long Street 12", "city": "Exampleville", "zip": "12345" },
        "orders": [{ "ssn": "1", "sum": 12.5 }, { "ssn": "2", "sum": 7.25 }],
    })
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
