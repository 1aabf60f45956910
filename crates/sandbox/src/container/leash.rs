//! How does a container end, however its gateway lets go of it?

use std::{io, os::fd::OwnedFd, sync::Arc, thread, time::Duration};

use rustix::process::Signal;
use tokio::net::unix::pipe;

use super::{Runtime, client, owner::PATIENCE};

/// A name that may have a container. Dropping it kills the container, not only the program that talks to it.
#[derive(Debug)]
pub(super) struct Leash {
    runtime: Arc<Runtime>,
    pub(super) name: String,
    /// The first process: everything in the container dies with it.
    handle: Option<OwnedFd>,
    state: State,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    MayExist,
    Removed,
}

impl Leash {
    pub(super) fn new(runtime: Arc<Runtime>, name: String) -> Self {
        Self { runtime, name, handle: None, state: State::MayExist }
    }

    pub(super) fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    pub(super) fn hold(&mut self, handle: Option<OwnedFd>) {
        self.handle = handle;
    }

    /// Ends everything in there, at once where we hold its first process, and else as soon as the runtime can.
    pub(super) fn kill(&self) {
        match &self.handle {
            Some(handle) => drop(rustix::process::pidfd_send_signal(handle, Signal::KILL)),
            None => self.remove_in_background(),
        }
    }

    /// Waits for the first process to end; for ever where we do not hold it.
    pub(super) async fn death(&self) {
        // Taken for a pipe only to be waited for: what polls as readable can be watched, and nothing is read.
        let watched = self
            .handle
            .as_ref()
            .and_then(|handle| pipe::Receiver::from_owned_fd_unchecked(handle.try_clone().ok()?).ok());
        match watched {
            Some(watched) => drop(watched.readable().await),
            None => std::future::pending().await,
        }
    }

    /// Removes what is left.
    pub(super) async fn remove(mut self) {
        let (runtime, name) = (Arc::clone(&self.runtime), self.name.clone());
        let removal = tokio::task::spawn_blocking(move || remove(&runtime, &name)).await;
        if matches!(removal, Ok(Ok(()))) {
            self.state = State::Removed;
        }
    }

    /// A thread of its own: the async runtime may be about to end. If the whole process ends, the next one sweeps.
    fn remove_in_background(&self) {
        let (runtime, name) = (Arc::clone(&self.runtime), self.name.clone());
        let _ = thread::Builder::new().name("container-reaper".to_owned()).spawn(move || {
            for _ in 0..ATTEMPTS {
                if remove(&runtime, &name).is_ok() {
                    return;
                }
                thread::sleep(BETWEEN_ATTEMPTS);
            }
        });
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if self.state == State::MayExist {
            if self.handle.is_some() {
                self.kill();
            }
            self.remove_in_background();
        }
    }
}

fn remove(runtime: &Runtime, name: &str) -> io::Result<()> {
    let answer = client::ask(&runtime.program, &runtime.removal(name), b"", PATIENCE)?;
    answer.content().map(drop).map_err(io::Error::other)
}

const ATTEMPTS: u32 = 5;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(500);
