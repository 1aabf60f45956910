//! The counters in the text format of Prometheus.

use std::fmt::Write as _;

use toolgate_gate::{EndKind, Gate, Metrics};

use crate::http::RefusalLog;

/// Every reason is listed from the start, because rates need a first sample of zero.
pub fn prometheus_text(gate: &Gate, refusals: &RefusalLog) -> String {
    let metrics = gate.metrics();
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, String)]| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    };
    let version = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    family("toolgate_build_info", "gauge", "The version that runs.", &[(version, "1".to_owned())]);
    let plain = |value: String| [(String::new(), value)];
    family("toolgate_tools", "gauge", "Live tools.", &plain(gate.live_count().to_string()));
    let running = metrics.running().to_string();
    family("toolgate_calls_running", "gauge", "Calls whose tool runs just now.", &plain(running));
    let ends = ends(metrics);
    family("toolgate_calls_total", "counter", "Calls since the start, by how they ended.", &ends);
    for (name, help, total) in [
        ("toolgate_alerts_total", "Alarming texts seen in calls since the start.", metrics.alerts()),
        (
            "toolgate_observer_panics_total",
            "Ends of calls at which an observer panicked, since the start.",
            metrics.observer_panics(),
        ),
        (
            "toolgate_worker_escape_attempts_total",
            "Workers that were killed for a forbidden system call since the start.",
            metrics.escape_attempts(),
        ),
    ] {
        family(name, "counter", help, &plain(total.to_string()));
    }
    let refused: Vec<(String, String)> = refusals
        .totals()
        .map(|(code, total)| (format!("{{reason=\"{}\"}}", code.code()), total.to_string()))
        .collect();
    family(
        "toolgate_door_refusals_total",
        "counter",
        "Requests and connections that the door refused since the start.",
        &refused,
    );
    let layers = layers(metrics);
    if !layers.is_empty() {
        family(
            "toolgate_isolation_layer",
            "gauge",
            "Isolation layers of this host: 1 is in force, 0.5 in part, 0 is missing.",
            &layers,
        );
    }
    let secrets: Vec<_> =
        metrics.secrets().map(|(tier, count)| (format!("{{tier=\"{tier}\"}}"), count.to_string())).collect();
    family(
        "toolgate_secrets_total",
        "counter",
        "Secrets found in results since the start, by how sure they are.",
        &secrets,
    );
    text
}

/// A label set and a value for each end of a call.
fn ends(metrics: &Metrics) -> Vec<(String, String)> {
    let mut ends = vec![("{end=\"released\",code=\"\"}".to_owned(), metrics.released().to_string())];
    ends.extend(metrics.ends().map(|(reason, count)| {
        let end = match reason.end() {
            EndKind::Refused => "refused",
            EndKind::Failed => "failed",
            EndKind::Broken => "broken",
        };
        (format!("{{end=\"{end}\",code=\"{}\"}}", reason.code()), count.to_string())
    }));
    ends
}

fn layers(metrics: &Metrics) -> Vec<(String, String)> {
    let layers = metrics.isolation().iter();
    layers.map(|layer| (format!("{{layer=\"{}\"}}", layer.name), layer.in_force.to_string())).collect()
}
