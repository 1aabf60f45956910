//! Kills and removes a container, however the gateway drops it.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
    thread,
    time::Duration,
};

use rustix::process::Signal;
use tokio::net::unix::pipe;

use super::{Runtime, client, owner::COMMAND_TIMEOUT};

/// A container name for which a container may exist. Dropping this kills the container, not only the client
/// program.
#[derive(Debug)]
pub(super) struct ContainerLeash {
    runtime: Arc<Runtime>,
    pub(super) name: String,
    /// The first process: everything in the container dies with it.
    handle: Option<OwnedFd>,
    state: RemovalState,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RemovalState {
    MayExist,
    Removed,
}

impl ContainerLeash {
    pub(super) fn new(runtime: Arc<Runtime>, name: String) -> Self {
        Self { runtime, name, handle: None, state: RemovalState::MayExist }
    }

    pub(super) fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    pub(super) fn hold(&mut self, handle: Option<OwnedFd>) {
        self.handle = handle;
    }

    /// The pidfd of the first process, if known.
    pub(super) fn held(&self) -> Option<BorrowedFd<'_>> {
        self.handle.as_ref().map(AsFd::as_fd)
    }

    /// Kills everything in the container: at once if we hold its first process, otherwise through the runtime.
    pub(super) fn kill(&self) {
        let is_killed = |handle| rustix::process::pidfd_send_signal(handle, Signal::KILL).is_ok();
        // Only root may kill a container that root created for an ordinary user.
        if !self.handle.as_ref().is_some_and(is_killed) {
            self.remove_in_background(1);
        }
    }

    /// Waits for the first process to end; forever if we do not hold it.
    pub(super) async fn death(&self) {
        // Wrapped as a pipe only to wait for it: a pidfd polls as readable when its process ends, and nothing is
        // read.
        let watched = self
            .handle
            .as_ref()
            .and_then(|handle| pipe::Receiver::from_owned_fd_unchecked(handle.try_clone().ok()?).ok());
        match watched {
            Some(watched) => drop(watched.readable().await),
            None => std::future::pending().await,
        }
    }

    /// Removes the container.
    pub(super) async fn remove(mut self) {
        let (runtime, name) = (Arc::clone(&self.runtime), self.name.clone());
        let removal = tokio::task::spawn_blocking(move || remove(&runtime, &name)).await;
        if matches!(removal, Ok(Ok(()))) {
            self.state = RemovalState::Removed;
        }
    }

    /// Uses a separate thread, because the async runtime may be about to end. If the whole process ends, the next
    /// gateway's sweep removes the container.
    fn remove_in_background(&self, checks: u32) {
        let (runtime, name) = (Arc::clone(&self.runtime), self.name.clone());
        let clearing = move || remove_until_gone(&runtime, &name, checks, PAUSES);
        let _ = thread::Builder::new().name("container-reaper".to_owned()).spawn(clearing);
    }
}

impl Drop for ContainerLeash {
    fn drop(&mut self) {
        if self.state == RemovalState::MayExist {
            if self.handle.is_some() {
                self.kill();
            }
            // A container whose first process we have not seen may still be starting.
            self.remove_in_background(if self.handle.is_some() { 1 } else { 2 });
        }
    }
}

fn remove(runtime: &Runtime, name: &str) -> io::Result<()> {
    let answer = client::ask(&runtime.program, &runtime.removal(name), b"", COMMAND_TIMEOUT)?;
    answer.success_output().map(drop).map_err(io::Error::other)
}

/// Removes a container until it was absent for `checks` checks in a row: a daemon may still create or start it after
/// the removal. A container that remains is left to the next gateway's sweep.
fn remove_until_gone(runtime: &Runtime, name: &str, checks: u32, pauses: Pauses) {
    let mut gone = 0;
    for _ in 0..ATTEMPTS {
        // Some runtimes report an error for an unknown name and some do not, so presence is checked separately.
        let _ = remove(runtime, name);
        let is_there = !is_gone(runtime, name);
        gone = if is_there { 0 } else { gone + 1 };
        if gone >= checks {
            return;
        }
        thread::sleep(if is_there { pauses.while_there } else { pauses.before_next_check });
    }
}

/// If the runtime gives no answer, the container counts as present.
fn is_gone(runtime: &Runtime, name: &str) -> bool {
    let filter = format!("name={name}");
    let question = ["ps", "--all", "--quiet", "--filter", &filter].map(str::to_owned);
    runtime.run(&question, COMMAND_TIMEOUT).is_ok_and(|ids| ids.trim_ascii().is_empty())
}

#[derive(Clone, Copy, Debug)]
struct Pauses {
    while_there: Duration,
    before_next_check: Duration,
}

const PAUSES: Pauses =
    Pauses { while_there: Duration::from_millis(500), before_next_check: Duration::from_secs(10) };
const ATTEMPTS: usize = 10;

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::container::{RuntimeKind, RuntimeProgram};

    /// A fake Docker. A container exists while a file `up` exists; requests are recorded in `asked`.
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
    fn check(files: &[&str], checks: u32, asked: &str, is_left: bool) {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for file in files {
            fs::write(at(file), "").unwrap();
        }
        remove_until_gone(&stand_in(dir.path()), "toolgate-x", checks, AT_ONCE);
        assert_eq!(fs::read_to_string(at("asked")).unwrap().trim_end(), asked, "{files:?}");
        assert_eq!(at("up").exists(), is_left, "{files:?}");
    }

    fn stand_in(dir: &Path) -> Runtime {
        let options = vec!["-c".to_owned(), STAND_IN.to_owned(), dir.display().to_string()];
        Runtime::ask(RuntimeProgram { kind: RuntimeKind::Docker, path: "/bin/sh".into(), options }).unwrap()
    }

    #[test]
    fn container_that_starts_after_its_removal_is_removed_again() {
        check(&["up"], 1, "rm ps", false);
        check(&["up", "comes-up-after-removal"], 1, "rm ps rm ps", false);
        check(&["comes-up-after-removal"], 2, "rm ps rm ps rm ps", false);
        check(&["comes-up-after-a-look"], 2, "rm ps rm ps", false);
    }

    #[test]
    fn container_that_cannot_be_removed_is_given_up_eventually() {
        let asked = ["rm ps"; ATTEMPTS].join(" ");
        check(&["up", "stuck"], 2, &asked, true);
    }

    const AT_ONCE: Pauses = Pauses { while_there: Duration::ZERO, before_next_check: Duration::ZERO };
}
