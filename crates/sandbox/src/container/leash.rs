//! How does a container end, however its gateway lets go of it?

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
    thread,
    time::Duration,
};

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

    /// The first process, where we hold it.
    pub(super) fn held(&self) -> Option<BorrowedFd<'_>> {
        self.handle.as_ref().map(AsFd::as_fd)
    }

    /// Ends everything in there, at once where we hold its first process, and else as soon as the runtime can.
    pub(super) fn kill(&self) {
        let is_killed = |handle| rustix::process::pidfd_send_signal(handle, Signal::KILL).is_ok();
        // Of a container that root made for an ordinary user, only root may kill it.
        if !self.handle.as_ref().is_some_and(is_killed) {
            self.remove_in_background(1);
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
    fn remove_in_background(&self, looks: u32) {
        let (runtime, name) = (Arc::clone(&self.runtime), self.name.clone());
        let clearing = move || clear_away(&runtime, &name, looks, PAUSES);
        let _ = thread::Builder::new().name("container-reaper".to_owned()).spawn(clearing);
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if self.state == State::MayExist {
            if self.handle.is_some() {
                self.kill();
            }
            // One whose first process nobody has seen may still be on its way.
            self.remove_in_background(if self.handle.is_some() { 1 } else { 2 });
        }
    }
}

fn remove(runtime: &Runtime, name: &str) -> io::Result<()> {
    let answer = client::ask(&runtime.program, &runtime.removal(name), b"", PATIENCE)?;
    answer.content().map(drop).map_err(io::Error::other)
}

/// Removes a container until it was not there for so many looks in a row: a daemon that was asked to make or start it before may
/// bring it up when it has already been removed. What is still there then is for the sweep of the next gateway.
fn clear_away(runtime: &Runtime, name: &str, looks: u32, pauses: Pauses) {
    let mut gone = 0;
    for _ in 0..ATTEMPTS {
        // Some runtimes are content with a name that nobody has, and some complain of it. Whether it is there is asked for.
        let _ = remove(runtime, name);
        let is_there = !is_gone(runtime, name);
        gone = if is_there { 0 } else { gone + 1 };
        if gone >= looks {
            return;
        }
        thread::sleep(if is_there { pauses.while_there } else { pauses.before_another_look });
    }
}

/// Where the runtime does not say, it is there.
fn is_gone(runtime: &Runtime, name: &str) -> bool {
    let filter = format!("name={name}");
    let question = ["ps", "--all", "--quiet", "--filter", &filter].map(str::to_owned);
    runtime.tell(&question, PATIENCE).is_ok_and(|ids| ids.trim_ascii().is_empty())
}

#[derive(Clone, Copy, Debug)]
struct Pauses {
    while_there: Duration,
    before_another_look: Duration,
}

const PAUSES: Pauses =
    Pauses { while_there: Duration::from_millis(500), before_another_look: Duration::from_secs(10) };
const ATTEMPTS: usize = 10;

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::container::{RuntimeKind, RuntimeProgram};

    /// Docker as far as it is asked here. A container is there while there is a file `up`; what is asked is written down.
    const STAND_IN: &str = r#"cd "$0"
case $1 in
  info) echo '{"ServerVersion":"24.0.1","OSType":"linux"}'; exit ;;
  rm)
    if ! [ -e stuck ]; then rm -f up; fi
    if [ -e comes-up-after-removal ]; then mv comes-up-after-removal up; fi ;;
  ps)
    if [ -e up ]; then echo 0123; fi
    if [ -e comes-up-after-a-look ]; then mv comes-up-after-a-look up; fi ;;
esac
printf '%s ' "$1" >> asked
"#;

    #[track_caller]
    fn check(files: &[&str], looks: u32, asked: &str, is_left: bool) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for file in files {
            fs::write(at(file), "").unwrap();
        }
        clear_away(&stand_in(folder.path()), "toolgate-x", looks, AT_ONCE);
        assert_eq!(fs::read_to_string(at("asked")).unwrap().trim_end(), asked, "{files:?}");
        assert_eq!(at("up").exists(), is_left, "{files:?}");
    }

    fn stand_in(folder: &Path) -> Runtime {
        let options = vec!["-c".to_owned(), STAND_IN.to_owned(), folder.display().to_string()];
        Runtime::ask(RuntimeProgram { kind: RuntimeKind::Docker, path: "/bin/sh".into(), options }).unwrap()
    }

    #[test]
    fn a_container_that_comes_up_after_its_removal_is_removed_again() {
        check(&["up"], 1, "rm ps", false);
        check(&["up", "comes-up-after-removal"], 1, "rm ps rm ps", false);
        check(&["comes-up-after-removal"], 2, "rm ps rm ps rm ps", false);
        check(&["comes-up-after-a-look"], 2, "rm ps rm ps", false);
    }

    #[test]
    fn a_container_that_cannot_be_removed_is_given_up_in_the_end() {
        let asked = ["rm ps"; ATTEMPTS].join(" ");
        check(&["up", "stuck"], 2, &asked, true);
    }

    const AT_ONCE: Pauses = Pauses { while_there: Duration::ZERO, before_another_look: Duration::ZERO };
}
