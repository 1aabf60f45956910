//! Records refused requests in journal and log, from a separate task. Requests do not wait for it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolgate_server::{RefusalLog, RefusalSummary};

use super::log::ServeLog;
use crate::Toolgate;

/// The task that records what `refusals` collects.
pub struct RefusalRecords {
    pub refusals: Arc<RefusalLog>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl RefusalRecords {
    pub fn start(toolgate: &Arc<Toolgate>, log: &ServeLog) -> Self {
        let refusals = Arc::<RefusalLog>::default();
        let stop = CancellationToken::new();
        let task =
            tokio::spawn(write_down(Arc::clone(toolgate), Arc::clone(&refusals), log.clone(), stop.clone()));
        Self { refusals, stop, task }
    }

    /// Records the rest. Call it after the fronts are closed and before the journal is.
    pub async fn finish(self) {
        self.stop.cancel();
        let _ = self.task.await;
    }
}

async fn write_down(
    toolgate: Arc<Toolgate>,
    refusals: Arc<RefusalLog>,
    log: ServeLog,
    stop: CancellationToken,
) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    let mut left = Vec::new();
    let mut last_problem = None;
    loop {
        let is_over = tokio::select! {
            () = stop.cancelled() => true,
            _ = second.tick() => false,
        };
        let new = if is_over { refusals.rest() } else { refusals.due(Instant::now()) };
        let lines: Vec<String> = new.iter().map(RefusalSummary::line).collect();
        add(&mut left, new);
        let due = std::mem::take(&mut left);
        if !due.is_empty() {
            let (toolgate, warnings) = (Arc::clone(&toolgate), log.clone());
            // The journal may block on the disk, and the log on its reader.
            let written = tokio::task::spawn_blocking(move || {
                let written = note_all(&toolgate, due);
                for line in &lines {
                    warnings.warn(line);
                }
                written
            })
            .await;
            let problem;
            (left, problem) = written.unwrap_or_default();
            if problem.is_some() && problem != last_problem {
                let problem = problem.as_deref().unwrap_or_default();
                log.error(&format!("refused requests are not in the journal: {problem}"));
            }
            last_problem = problem;
        }
        if is_over {
            return;
        }
    }
}

/// Returns the summaries that could not be written, for a retry, and why.
fn note_all(toolgate: &Toolgate, mut due: Vec<RefusalSummary>) -> (Vec<RefusalSummary>, Option<String>) {
    while let Some(refusal) = due.pop() {
        if let Err(error) = toolgate.note(&refusal.entry()) {
            due.push(refusal);
            return (due, Some(error.to_string()));
        }
    }
    (due, None)
}

/// Adds up summaries of the same kind. Beyond `MOST_LEFT` kinds it drops addresses and callers, so requests cannot fill the memory
/// while the disk is full.
fn add(left: &mut Vec<RefusalSummary>, more: Vec<RefusalSummary>) {
    for mut one in more {
        let is_known = |known: &&mut RefusalSummary, one: &RefusalSummary| {
            (known.code, &known.peer, &known.caller) == (one.code, &one.peer, &one.caller)
        };
        if left.len() >= MOST_LEFT && !left.iter_mut().any(|known| is_known(&known, &one)) {
            (one.peer, one.caller) = (None, None);
        }
        match left.iter_mut().find(|known| is_known(known, &one)) {
            Some(known) => known.count = known.count.saturating_add(one.count),
            None => left.push(one),
        }
    }
}

/// Each code may add one summary without address and caller.
const MOST_LEFT: usize = 64;

#[cfg(test)]
mod tests {
    use toolgate_server::DoorCode;

    use super::*;

    #[test]
    fn unwritten_summaries_are_added_up_and_bounded() {
        let mut left = Vec::new();
        for number in 0..1_000 {
            let peer = Some(format!("192.0.{}.{}", number / 250, number % 250));
            let one = |code| RefusalSummary {
                code,
                peer: peer.clone(),
                caller: None,
                count: 2,
                detail: String::new(),
            };
            add(&mut left, vec![one(DoorCode::TokenMissing), one(DoorCode::TokenInvalid)]);
        }
        assert_eq!(left.len(), MOST_LEFT + 2);
        assert_eq!(left.iter().map(|one| one.count).sum::<u64>(), 4_000);
        let again = left.first().cloned().unwrap();
        add(&mut left, vec![again.clone()]);
        assert_eq!(left.first().unwrap().count, again.count * 2);
    }
}
