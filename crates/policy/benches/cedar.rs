//! Measures the time of a decision, for different numbers of tools and policies.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench looks at the clock, prints, and fails loudly"
)]

use std::{
    fmt::Write as _,
    hint::black_box,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use toolgate_policy::{Caller, CedarPolicies, CedarTool, PolicySet, rate, resolve};
use toolgate_spec::{Format, check_text, model::ToolSpec};

fn main() {
    println!("{:>8}{:>8}{:>14}{:>14}{:>14}", "tools", "rules", "load", "decide", "could permit");
    for (tools, rules) in [(1, 20), (1000, 20), (1, 200), (1000, 200)] {
        let started = Instant::now();
        let set = load(tools, rules);
        let loaded = started.elapsed();
        let (caller, input) = (Caller::new("alice", ["p1", "files.read"]), input());
        let decide = median(|| set.decide(&caller, "tool0", &input));
        let could = median(|| set.could_permit(&caller, "tool0"));
        println!("{tools:>8}{rules:>8}{loaded:>14.2?}{decide:>14.2?}{could:>14.2?}");
    }
}

fn load(tools: usize, rules: usize) -> CedarPolicies {
    let spec = spec();
    let profiles = PolicySet::shipped().expect("the shipped profiles are valid");
    let policy = resolve(&spec, &profiles, None).expect("the tool has a policy");
    let level = rate(&policy, &spec, &profiles).level;
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
        "path": {"type": "string"}, "lines": {"type": "integer"}, "content": {"type": "string"},
    }});
    let names: Vec<String> = (0..tools).map(|tool| format!("tool{tool}")).collect();
    let tools = names.iter().map(|name| CedarTool {
        name,
        spec: &spec,
        input_schema: &schema,
        level,
        policy: &policy,
    });
    CedarPolicies::new(&[("bench.cedar".to_owned(), text(rules))], tools).expect("the rules are sound")
}

/// Policies about all tools, each of which must be evaluated.
fn text(rules: usize) -> String {
    let mut text = String::from("permit(principal, action in Action::\"call\", resource);\n");
    for rule in 1..rules {
        writeln!(
            text,
            "forbid(principal in Permission::\"p{rule}\", action in Action::\"call\", resource)
             when {{ context.input has path && context.input.path like \"/etc/{rule}/*\" }};"
        )
        .expect("writing to a string cannot fail");
    }
    text
}

fn spec() -> ToolSpec {
    let document = "{name: t, classification: read, handler: {cli: {command: date}}}";
    let tool = check_text(document, Format::Yaml).tools.into_iter().next();
    tool.and_then(|tool| tool.spec.clone()).expect("the document is sound")
}

/// Includes one large argument that no policy uses.
fn input() -> Map<String, Value> {
    let mut input = Map::new();
    input.insert("path".into(), "/srv/reports/2026.txt".into());
    input.insert("content".into(), "x".repeat(1_000_000).into());
    input
}

fn median<T>(run: impl Fn() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            black_box(run());
            started.elapsed()
        })
        .collect();
    times.sort();
    times.get(ROUNDS / 2).copied().unwrap_or_default()
}

const ROUNDS: usize = 2001;
