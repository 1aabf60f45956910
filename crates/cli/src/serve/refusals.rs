//! How do refusals at the door get into journal and log? From a task of their own: no request waits for it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolgate::Toolgate;
use toolgate_server::{Refusal, Refusals};

use super::log::Log;

/// Writes down what `refusals` gathers, until it is finished.
pub struct RefusalRecords {
    pub refusals: Arc<Refusals>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl RefusalRecords {
    pub fn start(toolgate: &Arc<Toolgate>, log: Log) -> Self {
        let refusals = Arc::<Refusals>::default();
        let stop = CancellationToken::new();
        let task = tokio::spawn(write_down(Arc::clone(toolgate), Arc::clone(&refusals), log, stop.clone()));
        Self { refusals, stop, task }
    }

    /// Writes what is left. To be called when the doors are closed and the journal is not.
    pub async fn finish(self) {
        self.stop.cancel();
        let _ = self.task.await;
    }
}

async fn write_down(toolgate: Arc<Toolgate>, refusals: Arc<Refusals>, log: Log, stop: CancellationToken) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    loop {
        let is_over = tokio::select! {
            () = stop.cancelled() => true,
            _ = second.tick() => false,
        };
        let due = if is_over { refusals.rest() } else { refusals.due(Instant::now()) };
        if !due.is_empty() {
            let toolgate = Arc::clone(&toolgate);
            // The journal may wait for the disk, and the log for whoever reads it.
            let problem = tokio::task::spawn_blocking(move || {
                let problem = note_all(&toolgate, &due);
                due.iter().for_each(|refusal| log.warn(&refusal.line()));
                problem
            })
            .await;
            if let Ok(Some(problem)) = problem {
                log.error(&format!("refusals at the door are not in the journal: {problem}"));
            }
        }
        if is_over {
            return;
        }
    }
}

/// What went wrong with the last one that could not be written.
fn note_all(toolgate: &Toolgate, due: &[Refusal]) -> Option<String> {
    let mut problem = None;
    for refusal in due {
        if let Err(error) = toolgate.note(&refusal.entry()) {
            problem = Some(error.to_string());
        }
    }
    problem
}
