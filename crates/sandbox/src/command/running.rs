//! The gateway's side of a running command: input, output and end.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    pin::pin,
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use rustix::{net::Shutdown, process::Signal};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
    net::{UnixStream, unix::pipe},
    task::JoinHandle,
    time::timeout,
};

use super::{
    CommandReport, CommandUsage, Ending, OutputCaps, Refused,
    encode::{Account, Word},
    groundwork::Groundwork,
    jailer::Errand,
    notices::Listed,
    passing::{self, Parcel},
    prepared::RunningMark,
};
use crate::{
    LayerSet, ProxySockets,
    sys::process,
    wire::{self, HEADER},
};

/// A command in its jail. Dropping it kills the command and all of its descendants.
#[derive(Debug)]
pub struct Running {
    pub(crate) leash: Leash,
    pub(crate) sockets: Option<ProxySockets>,
    pub(crate) strength: LayerSet,
    pub(crate) stdin: pipe::Sender,
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
}

impl Running {
    /// The isolation layers around this command.
    pub fn strength(&self) -> LayerSet {
        self.strength
    }

    /// The sockets of [`super::Network::Proxied`]; returns them once.
    pub fn take_sockets(&mut self) -> Option<ProxySockets> {
        self.sockets.take()
    }

    /// Returns a function that lists the denials so far, even if the command is dropped before its end.
    pub fn witness(&self) -> impl Fn() -> Vec<Refused> + Send + Sync + use<> {
        let refused = Arc::clone(&self.leash.refused);
        move || refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Passes the input, collects the output, and kills the command at the deadline or when its output is too
    /// large.
    pub async fn finish(self, stdin: Vec<u8>, caps: OutputCaps, deadline: Duration) -> CommandReport {
        let Self { leash, strength, stdin: input, stdout, stderr, sockets } = self;
        // Unused sockets are closed, because nothing will answer there.
        drop(sockets);
        let (mut out, mut err) = (Captured::up_to(caps.stdout), Captured::up_to(caps.stderr));
        let mut account = None;
        let is_late = {
            let whole = async {
                let hear = out.hear_or_kill(stdout, &leash);
                let ((), (), (), heard) =
                    tokio::join!(feed(input, &stdin), hear, err.hear(stderr), leash.account());
                account = Some(heard);
            };
            let mut whole = pin!(whole);
            let is_late = timeout(deadline, &mut whole).await.is_err();
            if is_late {
                leash.kill();
                let _ = timeout(LAST_BREATH, whole).await;
            }
            is_late
        };
        let account = account.unwrap_or_else(|| leash.broken("the jail did not end after it was killed"));
        let ending = match account.ending {
            _ if out.is_over => Ending::OutputTooLarge,
            _ if is_late => Ending::TimedOut,
            ending => ending,
        };
        CommandReport {
            ending,
            stdout: out.bytes,
            stderr: err.bytes,
            stderr_cut: err.is_over,
            refused: account.refused.kept,
            refused_beyond: account.refused.beyond,
            paths_beyond: account.refused.paths_beyond,
            strength,
            usage: account.usage,
        }
    }
}

impl Running {
    /// Separates the streams of a long-lived command from the handle that ends it.
    pub fn into_service(self) -> (ServiceStreams, ServiceHandle) {
        let Self { leash, stdin, stdout, stderr, sockets, .. } = self;
        drop(sockets);
        // Someone must read the supervisor's messages: it blocks when the socket is full.
        let reader = tokio::spawn(async move {
            let account = leash.account().await;
            (account.ending, leash)
        });
        (ServiceStreams { stdin, stdout, stderr }, ServiceHandle(reader))
    }
}

/// The standard streams of a long-lived command.
#[derive(Debug)]
pub struct ServiceStreams {
    pub stdin: pipe::Sender,
    pub stdout: pipe::Receiver,
    pub stderr: pipe::Receiver,
}

/// A long-lived command. Dropping it kills the command and all of its descendants.
#[derive(Debug)]
pub struct ServiceHandle(JoinHandle<(Ending, Leash)>);

impl ServiceHandle {
    /// Whether the command has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits until the command has ended.
    pub async fn ended(&mut self) -> Ending {
        match (&mut self.0).await {
            Ok((ending, _leash)) => ending,
            Err(error) => Ending::JailFailed(error.to_string()),
        }
    }
}

impl Drop for ServiceHandle {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The connection to a supervisor, and a way to kill what it supervises.
#[derive(Debug)]
pub(crate) struct Leash {
    control: UnixStream,
    /// Everything dies with this process: the first of the PID namespace, or the leader of the process group, which
    /// no process can leave.
    handle: Option<OwnedFd>,
    /// Denials received so far. The report repeats them; if there is no report, these are used.
    refused: Arc<Mutex<Vec<Refused>>>,
    /// Keeps the jailer alive: it must outlive its supervisors.
    jailer: mpsc::Sender<Errand>,
    /// Groundwork to prepare for the next command when this one has ended.
    refill: Option<Groundwork>,
    running: Option<RunningMark>,
}

impl Leash {
    pub(crate) fn new(control: UnixStream, jailer: mpsc::Sender<Errand>) -> Self {
        Self { control, handle: None, refused: Arc::default(), jailer, refill: None, running: None }
    }

    /// For a command that runs.
    pub(crate) fn of_command(
        mut self,
        handle: Option<OwnedFd>,
        refill: Option<Groundwork>,
        running: RunningMark,
    ) -> Self {
        (self.handle, self.refill, self.running) = (handle, refill, Some(running));
        self
    }

    pub(crate) async fn send(&self, frame: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let (mut rest, mut descriptors) = (frame, descriptors);
        while !rest.is_empty() {
            let attempt = || passing::send_some(self.control.as_fd(), rest, descriptors);
            let sent = self.control.async_io(Interest::WRITABLE, attempt).await?;
            rest = rest.get(sent..).unwrap_or_default();
            descriptors = &[];
        }
        Ok(())
    }

    pub(crate) async fn receive(&self) -> io::Result<Parcel> {
        let mut descriptors = Vec::new();
        let mut header = [0; HEADER];
        self.fill(&mut header, &mut descriptors).await?;
        let (kind, length) = wire::body_length(header).map_err(io::Error::other)?;
        if length > passing::MOST_BYTES {
            return Err(io::Error::other("the supervisor sent a frame that is too long"));
        }
        let mut body = vec![0; length];
        self.fill(&mut body, &mut descriptors).await?;
        Ok(Parcel { kind, body, descriptors })
    }

    async fn fill(&self, bytes: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> io::Result<()> {
        let mut filled = 0;
        while let Some(rest @ [_, ..]) = bytes.get_mut(filled..) {
            let receive = || passing::receive_some(self.control.as_fd(), rest, descriptors);
            match self.control.async_io(Interest::READABLE, receive).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => filled += got,
            }
        }
        Ok(())
    }

    /// Receives denials and the final report of the supervisor.
    async fn account(&self) -> Account {
        loop {
            let word = match self.receive().await {
                Ok(parcel) => Word::read(parcel.kind, &parcel.body),
                Err(error) => Err(error),
            };
            match word {
                Ok(Word::Refused(refused)) => {
                    self.refused.lock().unwrap_or_else(PoisonError::into_inner).push(refused);
                }
                Ok(Word::Report(account)) => return account,
                Ok(_) => return self.broken("the supervisor sent a message out of turn"),
                Err(error) => return self.broken(&format!("lost the supervisor: {error}")),
            }
        }
    }

    /// The report for a command whose supervisor sent none: the denials received so far.
    fn broken(&self, why: &str) -> Account {
        Account {
            ending: Ending::JailFailed(why.to_owned()),
            usage: CommandUsage::default(),
            refused: Listed { kept: self.told(), beyond: 0, paths_beyond: 0 },
        }
    }

    fn told(&self) -> Vec<Refused> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Kills everything; the supervisor still reports.
    pub(crate) fn kill(&self) {
        if let Some(handle) = &self.handle {
            // The first process of a namespace leads no group, so this has no effect there.
            let _ = process::kill_group(handle.as_fd());
            let _ = rustix::process::pidfd_send_signal(handle, Signal::KILL);
        }
        // A supervisor that sees the end of this side kills what it supervises, even without a handle.
        let _ = rustix::net::shutdown(&self.control, Shutdown::Write);
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.kill();
        self.running = None;
        if let Some(groundwork) = self.refill {
            let _ = self.jailer.send(Errand::Refill(groundwork));
        }
    }
}

/// The first bytes of an output.
struct Captured {
    bytes: Vec<u8>,
    cap: usize,
    is_over: bool,
}

impl Captured {
    fn up_to(cap: usize) -> Self {
        Self { bytes: Vec::new(), cap, is_over: false }
    }

    /// Keeps what fits and discards the rest.
    async fn hear(&mut self, mut pipe: pipe::Receiver) {
        while self.take(&mut pipe).await {}
    }

    async fn hear_or_kill(&mut self, mut pipe: pipe::Receiver, leash: &Leash) {
        while self.take(&mut pipe).await {
            if self.is_over {
                leash.kill();
                return;
            }
        }
    }

    /// Returns whether more may follow.
    async fn take(&mut self, pipe: &mut pipe::Receiver) -> bool {
        let mut piece = vec![0; PIECE];
        let Ok(got @ 1..) = pipe.read(&mut piece).await else { return false };
        let fits = got.min(self.cap.saturating_sub(self.bytes.len()));
        self.bytes.extend(piece.get(..fits).unwrap_or_default());
        self.is_over |= fits < got;
        true
    }
}

/// A command need not read its input, so errors are ignored.
async fn feed(mut pipe: pipe::Sender, bytes: &[u8]) {
    let _ = pipe.write_all(bytes).await;
}

const PIECE: usize = 16 * 1024;

/// How long a killed jail may take to report, so this never hangs.
const LAST_BREATH: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    /// Denials received before a supervisor dies or sends an invalid message are still valid.
    #[test]
    fn denials_are_reported_without_a_final_report() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let refused = Refused::Address { address: "192.0.2.1:80".to_owned() };
        for last in [None, Some(Word::Sockets)] {
            let account = runtime.block_on(async {
                let (control, mut supervisor) = UnixStream::pair().unwrap();
                let (jailer, _kept) = mpsc::channel();
                let leash = Leash::new(control, jailer);
                for word in [Word::Refused(refused.clone())].iter().chain(&last) {
                    supervisor.write_all(&word.to_frame().unwrap()).await.unwrap();
                }
                drop(supervisor);
                leash.account().await
            });
            assert!(matches!(account.ending, Ending::JailFailed(_)), "{:?}", account.ending);
            assert_eq!(account.refused.kept, std::slice::from_ref(&refused));
        }
    }
}
