//! Reports escape attempts of workers to the journal, the metrics and the webhook, also while no call runs.

use std::sync::Arc;

use serde_json::json;
use toolgate_gate::Metrics;
use toolgate_sandbox::{Death, WorkerEnd};

use crate::{alerts::Alerts, journal::FileJournal};

/// Lives as long as the gateway. The worker pool holds a weak reference, otherwise it would keep the journal open.
pub struct EscapeAlarm {
    pub journal: FileJournal,
    pub metrics: Arc<Metrics>,
    pub alerts: Option<Arc<Alerts>>,
}

impl EscapeAlarm {
    /// Reports a worker that made a forbidden system call. Any other end is a bug, a limit, or the gateway's own decision.
    pub fn worker_ended(&self, end: &WorkerEnd) {
        if end.death != Death::SeccompViolation {
            return;
        }
        self.metrics.escape_attempted();
        let entry = json!({
            "kind": "worker.escape_attempt",
            "worker": end.worker,
            "calls": end.calls,
            "message": end.death.to_string(),
        });
        // If the journal cannot be written, the gateway is not ready anyway. The webhook still gets the alert.
        let _ = self.journal.write(&entry);
        if let Some(alerts) = &self.alerts {
            alerts.raise(&entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, time::SystemTime};

    use serde_json::Value;

    use super::*;

    fn journal(state: &Path) -> FileJournal {
        let key = toolgate_audit::Key::open_or_create(&state.join("journal.key")).unwrap();
        let clock: toolgate_audit::ClockFn = Arc::new(SystemTime::now);
        let options = toolgate_audit::JournalOptions {
            checkpoint_every: 1_000,
            sync: toolgate_audit::Durability::Write,
        };
        let files = toolgate_audit::Journal::open(&state.join("journal"), key, options, clock).unwrap();
        FileJournal::new(files, toolgate_audit::Durability::Write)
    }

    fn written(state: &Path) -> Vec<Value> {
        let files = fs::read_dir(state.join("journal")).unwrap().map(|file| file.unwrap().path());
        files
            .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
            .flat_map(|path| {
                let text = fs::read_to_string(path).unwrap();
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
            })
            .map(|record| record["entry"].clone())
            .collect()
    }

    #[test]
    fn only_a_forbidden_system_call_is_reported() {
        let state = tempfile::tempdir().unwrap();
        let alarm = EscapeAlarm { journal: journal(state.path()), metrics: Arc::default(), alerts: None };
        for death in [Death::Exited(0), Death::Killed, Death::CpuLimit, Death::Crashed(11)] {
            alarm.worker_ended(&WorkerEnd { worker: 6, calls: 1, death });
        }
        assert_eq!((alarm.metrics.escape_attempts(), written(state.path())), (0, vec![]));
        alarm.worker_ended(&WorkerEnd { worker: 7, calls: 3, death: Death::SeccompViolation });
        let entry = json!({
            "kind": "worker.escape_attempt", "worker": 7, "calls": 3,
            "message": "it made a system call that its seccomp profile forbids",
        });
        assert_eq!((alarm.metrics.escape_attempts(), written(state.path())), (1, vec![entry]));
    }
}
