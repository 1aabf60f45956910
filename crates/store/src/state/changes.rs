//! A background thread that polls SQLite five times a second for commits of other processes.

use std::{
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread::JoinHandle,
    time::Duration,
};

use super::{SharedState, StateError};

/// Polls until it is dropped.
pub(super) struct Poller {
    /// Dropped to end the thread.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Poller {
    pub(super) fn start(shared: Arc<SharedState>) -> Result<Self, StateError> {
        let (stop, stopped) = mpsc::channel::<()>();
        let path = shared.path.clone();
        let thread = std::thread::Builder::new()
            .name("toolgate-state".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    shared.check_for_changes();
                    shared.note_used_tokens();
                }
                shared.note_used_tokens();
            })
            .map_err(|error| StateError::File { path, error })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // Ignore a panic of the thread: there is nothing to clean up.
            let _ = thread.join();
        }
    }
}

const EVERY: Duration = Duration::from_millis(200);
