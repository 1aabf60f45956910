//! What does the field policy cost beside reading the same bytes? A result of many records, filtered by rules of every kind,
//! against `serde_json` parsing its text; in turn within one loop.
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

use serde_json::{Value, json};
use toolgate_policy::OutputPolicy;
use toolgate_spec::{
    FieldPattern,
    model::{Governance, OutputAction, OutputRule},
};

fn main() {
    let rules = [
        (".items[].id", OutputAction::Allow),
        (".items[].name", OutputAction::Allow),
        (".items[].email", OutputAction::Mask),
        (".items[].address", OutputAction::Allow),
        (".items[].address.street", OutputAction::Redact),
        ("..ssn", OutputAction::Redact),
        ("*.note", OutputAction::Allow),
        (".total", OutputAction::Allow),
    ];
    let rule = |(pattern, action): &(&str, OutputAction)| OutputRule {
        pattern: FieldPattern::parse(pattern).unwrap(),
        action: *action,
    };
    let governance =
        Governance { output_policy: Some(rules.iter().map(rule).collect()), ..Governance::default() };
    let policy = OutputPolicy::of(&governance);
    let text = document().to_string();
    let (mut parsing, mut filtering) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        let begin = Instant::now();
        let value: Value = serde_json::from_str(&text).unwrap();
        parsing.push(begin.elapsed());
        let begin = Instant::now();
        let (value, redacted) = policy.apply(value);
        filtering.push(begin.elapsed());
        assert_eq!(redacted.len(), 5, "{redacted:?}");
        black_box(value);
    }
    let (parsing, filtering) = (median(&mut parsing), median(&mut filtering));
    let ratio = filtering.as_secs_f64() / parsing.as_secs_f64();
    println!("{} bytes: parsed in {parsing:?}, filtered in {filtering:?}", text.len());
    let verdict = if ratio <= 2.0 { "met" } else { "MISSED" };
    println!("  filter / parse {ratio:>8.2} × (goal ≤ 2: {verdict})");
}

fn document() -> Value {
    let item = |number: usize| {
        json!({
            "id": number, "name": format!("Ann Example {number}"), "email": format!("ann{number}@example.com"),
            "ssn": "078-05-1120", "note": "Calls on Mondays; prefers letters. ".repeat(2),
            "address": { "street": "Long Street 12", "city": "Exampleville", "zip": "12345" },
            "orders": [{ "ssn": "1", "sum": 12.5 }, { "ssn": "2", "sum": 7.25 }],
        })
    };
    json!({ "items": (0..5_000).map(item).collect::<Vec<_>>(), "total": 5_000 })
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
