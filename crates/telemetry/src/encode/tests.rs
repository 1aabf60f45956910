use std::{fs, path::PathBuf};

use serde_json::{from_str, json};
use toolgate_gate::{CallStage, IsolationLayer, Purpose, Reason};
use toolgate_policy::RiskLevel;

use super::*;
use crate::{
    counts::CallCounters,
    settings::CallerNames,
    summary::{CallOutcome, CallSummary},
    tally::{Cause, Tally},
    testing::{finished, record},
};

/// Compares with the committed file; `TOOLGATE_BLESS=1` writes it.
#[track_caller]
fn check(name: &str, found: &Value) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/encode/snapshots").join(name);
    if std::env::var_os("TOOLGATE_BLESS").is_some() {
        fs::write(&path, format!("{found:#}\n")).unwrap();
    }
    let expected: Value = from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(format!("{found:#}"), format!("{expected:#}"));
}

fn ended(reason: Option<Reason>) -> CallSummary {
    CallSummary::of(&finished(&record(), reason), CallerNames::Hashed)
}

fn spans_of(call: CallSummary) -> Vec<Value> {
    let body = traces(&Speaker::new([7; 16]), &[call]);
    body.pointer("/resourceSpans/0/scopeSpans/0/spans").unwrap().as_array().unwrap().clone()
}

#[test]
fn trace_matches_the_snapshot() {
    check("trace.json", &traces(&Speaker::new([7; 16]), &[ended(Some(Reason::OutputTooLarge))]));
}

#[test]
fn isolation_layers_are_gauges() {
    let layer = |name: &str, in_force| IsolationLayer { name: name.to_owned(), in_force };
    let counts = CallCounters::new(vec![layer("landlock", 1.0), layer("jail_for_commands", 0.0)]);
    let now = SystemTime::UNIX_EPOCH;
    let body = metrics(&Speaker::new([7; 16]), &counts, &Tally::default(), now, now);
    let sent = &body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    let layers = sent.as_array().unwrap().iter().find(|metric| metric["name"] == "toolgate.isolation.layer");
    let points = layers.unwrap()["gauge"]["dataPoints"].as_array().unwrap();
    let seen: Vec<_> = points
        .iter()
        .map(|point| (point["attributes"][0]["value"]["stringValue"].clone(), point["asDouble"].clone()))
        .collect();
    assert_eq!(seen, [(json!("landlock"), json!(1.0)), (json!("jail_for_commands"), json!(0.0))]);
}

#[test]
fn metrics_match_the_snapshot() {
    let isolation = vec![IsolationLayer { name: "landlock".to_owned(), in_force: 0.5 }];
    let (counts, tally) = (CallCounters::new(isolation), Tally::default());
    let took = Duration::from_micros(2_500);
    counts.ended(Purpose::Call, Some(RiskLevel::L2), None, took);
    counts.ended(Purpose::Call, Some(RiskLevel::L2), None, took);
    counts.ended(Purpose::LocalPass, Some(RiskLevel::L4), Some(Reason::Timeout), Duration::from_secs(400));
    counts.ended(Purpose::Call, None, Some(Reason::UnknownTool), Duration::ZERO);
    tally.dropped(Cause::QueueFull, 5);
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    check(
        "metrics.json",
        &metrics(&Speaker::new([7; 16]), &counts, &tally, at(1_789_000_000), at(1_789_000_015)),
    );
}

#[test]
fn only_drops_are_reported_before_the_first_call() {
    let body = metrics(
        &Speaker::new([7; 16]),
        &CallCounters::new(Vec::new()),
        &Tally::default(),
        SystemTime::UNIX_EPOCH,
        SystemTime::UNIX_EPOCH,
    );
    let metrics = body.pointer("/resourceMetrics/0/scopeMetrics/0/metrics").unwrap().as_array().unwrap();
    let names: Vec<&str> = metrics.iter().map(|metric| metric["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["toolgate.telemetry.dropped"]);
}

#[test]
fn stage_spans_are_consecutive_within_the_call() {
    let spans = spans_of(ended(None));
    let time = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
    let (root, stages) = spans.split_first().unwrap();
    let mut last = time(root, "startTimeUnixNano");
    for stage in stages {
        assert_eq!(time(stage, "startTimeUnixNano"), last);
        assert_eq!((&stage["parentSpanId"], &stage["traceId"]), (&root["spanId"], &root["traceId"]));
        last = time(stage, "endTimeUnixNano");
    }
    assert_eq!(last, time(root, "endTimeUnixNano"));
}

#[test]
fn only_failed_and_broken_calls_are_errors() {
    for reason in std::iter::once(None).chain(Reason::ALL.iter().copied().map(Some)) {
        let spans = spans_of(ended(reason));
        let is_error = CallOutcome::of(reason).is_error();
        assert_eq!(spans[0]["status"].get("code").is_some(), is_error, "{reason:?}");
        let stopped: Vec<&str> = spans[1..]
            .iter()
            .filter(|span| span["status"].get("code").is_some())
            .map(|span| span["name"].as_str().unwrap())
            .collect();
        let expected: Vec<&str> =
            reason.filter(|_| is_error).and_then(Reason::stage).map(CallStage::name).into_iter().collect();
        assert_eq!(stopped, expected, "{reason:?}");
    }
}

#[test]
fn arguments_outputs_and_client_data_are_not_sent() {
    for callers in [CallerNames::Hashed, CallerNames::Plain] {
        let call = CallSummary::of(&finished(&record(), Some(Reason::ToolFailed)), callers);
        let body = traces(&Speaker::new([7; 16]), &[call]).to_string();
        assert!(!body.contains("SECRET"), "{body}");
        assert_eq!(body.contains("anna"), callers == CallerNames::Plain, "{body}");
    }
}

#[test]
fn call_of_an_unknown_tool_has_a_fixed_name() {
    let mut record = record();
    record.tool = json!({ "name": "made up" }).into();
    let call = CallSummary::of(&finished(&record, Some(Reason::UnknownTool)), CallerNames::Hashed);
    let spans = spans_of(call);
    assert_eq!(spans[0]["name"], "tools/call");
    assert!(!Value::from(spans).to_string().contains("made up"));
}

#[test]
fn ids_are_valid_for_any_call_id() {
    let mut seen = std::collections::BTreeSet::new();
    for call_id in ["", "call 7", "00000000-0000-0000-0000-000000000000", "+19a8b7c6d5e7f408123456789abcdef"]
    {
        let spans = spans_of(CallSummary { call_id: call_id.into(), ..ended(None) });
        let trace = spans[0]["traceId"].as_str().unwrap().to_owned();
        assert!(trace.len() == 32 && trace.bytes().all(|digit| digit.is_ascii_hexdigit()), "{trace}");
        assert_ne!(trace, "0".repeat(32));
        assert!(seen.insert(trace), "{call_id}");
        let ids: std::collections::BTreeSet<&str> =
            spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), spans.len());
        assert!(ids.iter().all(|id| id.len() == 16), "{ids:?}");
    }
}

#[test]
fn a_clock_before_1970_does_no_harm() {
    let call = CallSummary { begun: SystemTime::UNIX_EPOCH - Duration::from_secs(9), ..ended(None) };
    assert_eq!(spans_of(call)[0]["startTimeUnixNano"], "0");
}

/// Every name that can be sent is documented, and every documented name can be sent.
#[test]
fn every_name_is_documented() {
    let documented = include_str!("../../../../docs/telemetry.md");
    let mut sent = std::collections::BTreeSet::new();
    for name in ["trace.json", "metrics.json"] {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/encode/snapshots").join(name);
        names(&from_str(&fs::read_to_string(path).unwrap()).unwrap(), &mut sent);
    }
    let listed: std::collections::BTreeSet<String> = documented
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name.to_owned())
        .filter(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    assert_eq!(listed, sent);
}

/// Keys of attributes, and names of metrics.
fn names(value: &Value, found: &mut std::collections::BTreeSet<String>) {
    let inner: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => {
            let named = ["key", "name"].iter().filter_map(|key| members.get(*key)?.as_str());
            found.extend(
                named
                    .filter(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
                    .map(str::to_owned),
            );
            members.values().collect()
        }
        _ => Vec::new(),
    };
    for value in inner {
        names(value, found);
    }
}

const PREFIXES: [&str; 6] = ["toolgate.", "service.", "error.", "gen_ai.", "mcp.", "network."];
