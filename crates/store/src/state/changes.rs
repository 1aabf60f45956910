//! Who notices what another process has written? A small thread that asks SQLite five times a second.

use std::{
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread::JoinHandle,
    time::Duration,
};

use super::{Shared, StateError};

/// Looks for changes until it is dropped.
pub(super) struct Poller {
    /// Dropped to end the thread.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Poller {
    pub(super) fn start(shared: Arc<Shared>) -> Result<Self, StateError> {
        let (stop, stopped) = mpsc::channel::<()>();
        let path = shared.path.clone();
        let thread = std::thread::Builder::new()
            .name("toolgate-state".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    shared.look();
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
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

const EVERY: Duration = Duration::from_millis(200);
