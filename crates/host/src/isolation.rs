//! Reports the isolation layers that this host does not enforce.

use serde_json::{Value, json};
use toolgate_gate::IsolationLayer;
use toolgate_sandbox::{HostRow, HostState, probe_layers};

/// The state of each layer at the time of the probe.
#[derive(Clone, Debug)]
pub struct HostLayers(Vec<HostRow>);

impl HostLayers {
    pub fn probe() -> Self {
        Self(probe_layers())
    }

    /// One sentence for each layer that is not fully enforced, with its remedy.
    pub fn warnings(&self) -> Vec<String> {
        self.weaker()
            .map(|row| {
                let state = layer_state(row.state);
                let remedy = if row.remedy.is_empty() { "see `toolgate doctor`" } else { row.remedy };
                format!("isolation is weaker on this host: {} is {state}: {}; {remedy}", row.name, row.why)
            })
            .collect()
    }

    /// The names of these layers on one line. `None`: all are enforced.
    pub fn summary(&self) -> Option<String> {
        let names: Vec<String> =
            self.weaker().map(|row| format!("{} {}", row.name, layer_state(row.state))).collect();
        (!names.is_empty()).then(|| format!("isolation is weaker on this host: {}", names.join(", ")))
    }

    pub fn gauges(&self) -> Vec<IsolationLayer> {
        let gauge = |row: &HostRow| IsolationLayer {
            name: row.name.replace(' ', "_"),
            in_force: match row.state {
                HostState::Enforced => 1.0,
                HostState::Partly => 0.5,
                HostState::Missing => 0.0,
            },
        };
        self.0.iter().map(gauge).collect()
    }

    pub fn to_json(&self) -> Value {
        let row = |row: &HostRow| json!({ "layer": row.name, "state": layer_state(row.state), "why": row.why, "remedy": row.remedy });
        self.0.iter().map(row).collect()
    }

    fn weaker(&self) -> impl Iterator<Item = &HostRow> {
        self.0.iter().filter(|row| row.state != HostState::Enforced)
    }
}

/// The name of a state in output and JSON.
pub const fn layer_state(state: HostState) -> &'static str {
    match state {
        HostState::Enforced => "enforced",
        HostState::Partly => "partly",
        HostState::Missing => "missing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers(rows: &[(&'static str, HostState, &'static str)]) -> HostLayers {
        let row = |(name, state, remedy): &(&'static str, HostState, &'static str)| HostRow {
            name,
            state: *state,
            why: "refused".to_owned(),
            remedy,
        };
        HostLayers(rows.iter().map(row).collect())
    }

    #[test]
    fn full_isolation_gives_no_warning() {
        let full = layers(&[("landlock", HostState::Enforced, ""), ("seccomp", HostState::Enforced, "")]);
        assert_eq!((full.warnings(), full.summary()), (Vec::new(), None));
        assert!(full.gauges().iter().all(|layer| layer.in_force > 0.9));
    }

    #[test]
    fn weaker_layers_are_reported_with_their_remedy() {
        let weak = layers(&[
            ("landlock", HostState::Partly, "use Linux 6.7 or later"),
            ("seccomp", HostState::Enforced, ""),
            ("jail for commands", HostState::Missing, "run as root"),
        ]);
        let expected = [
            "isolation is weaker on this host: landlock is partly: refused; use Linux 6.7 or later",
            "isolation is weaker on this host: jail for commands is missing: refused; run as root",
        ];
        assert_eq!(weak.warnings(), expected);
        let summary = "isolation is weaker on this host: landlock partly, jail for commands missing";
        assert_eq!(weak.summary().as_deref(), Some(summary));
        let gauges: Vec<_> = weak.gauges().into_iter().map(|layer| (layer.name, layer.in_force)).collect();
        let expected = [("landlock", 0.5), ("seccomp", 1.0), ("jail_for_commands", 0.0)];
        assert_eq!(gauges, expected.map(|(name, in_force)| (name.to_owned(), in_force)));
        assert_eq!(weak.to_json()[2]["remedy"], "run as root");
    }
}
