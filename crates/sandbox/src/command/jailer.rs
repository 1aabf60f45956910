//! The gateway's side of the jailer: starts commands.
//!
//! A thread that never ends starts the jailer, because the kernel kills the jailer when the *thread* that started
//! it ends.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::{net::UnixStream, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::unix::pipe;

use super::{
    CommandJail, SpawnError,
    encode::{self, Word},
    groundwork::Groundwork,
    passing,
    prepared::{PreparedJails, RunningMark},
    rules,
    running::{Leash, Running},
};

use crate::{Layer, LayerSet, ProxySockets};

/// `argv[0]` of a jailer process.
pub const JAILER_NAME: &str = "toolgate-jailer";

/// The helper process that creates jails. It is restarted if it dies.
#[derive(Clone, Debug)]
pub struct Jailer {
    errands: mpsc::Sender<Errand>,
    prepared: Arc<PreparedJails>,
}

/// A request to the thread that owns the jailer.
#[derive(Debug)]
pub(crate) enum Errand {
    /// The supervisor's end of a connection, for the jailer.
    Supervise(OwnedFd),
    /// A command with this groundwork has ended, and another may follow.
    Refill(Groundwork),
}

impl Jailer {
    /// Default maximum of prepared jails.
    pub const PREPARED: usize = 4;

    /// Starts `program` under the jailer's name; its `main` must call [`super::jailer_main`] first. Raises this
    /// process's limit of open files to the hard limit.
    pub fn start(program: &Path) -> io::Result<Self> {
        Self::start_with(program, Self::PREPARED)
    }

    /// Like [`Self::start`], with this maximum of prepared jails. With 0 every jail is created on demand.
    pub fn start_with(program: &Path, prepared: usize) -> io::Result<Self> {
        make_room_for_descriptors();
        let (errands, inbox) = mpsc::channel();
        let (told, outcome) = mpsc::sync_channel(1);
        let program = program.to_owned();
        let prepared = Arc::new(PreparedJails::up_to(prepared));
        let jails = Arc::clone(&prepared);
        thread::Builder::new().name("jailer-keeper".to_owned()).spawn(move || {
            match Zygote::start(&program) {
                Ok(zygote) => {
                    let _ = told.send(Ok(()));
                    keep(zygote, &program, &inbox, &jails);
                }
                Err(error) => drop(told.send(Err(error))),
            }
        })?;
        outcome.recv().map_err(|_| gone())??;
        Ok(Self { errands, prepared })
    }

    /// Creates the jail, or takes a prepared one, and starts the command in it.
    pub async fn spawn(&self, jail: CommandJail) -> Result<Running, SpawnError> {
        rules::check(&jail)?;
        let mark = RunningMark::new(&self.prepared);
        let groundwork = Groundwork::of(&jail);
        let (frame, opened) = encode::order(&jail)?;
        let (stdin, feed) = io::pipe().map_err(SpawnError::Jailer)?;
        let (out, stdout) = io::pipe().map_err(SpawnError::Jailer)?;
        let (err, stderr) = io::pipe().map_err(SpawnError::Jailer)?;
        let mut descriptors = vec![stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        descriptors.extend(opened);
        let (leash, strength, passed) = self.begin(groundwork, &frame, &descriptors).await?;
        // Otherwise our copies would keep the pipes open after the command has closed its ends.
        drop((stdin, stdout, stderr, jail));

        let mut passed = passed.into_iter();
        // A host without namespaces has nothing to prepare.
        let refill = strength.has(Layer::PrivateView).then_some(groundwork);
        let leash = leash.of_command(passed.next(), refill, mark);
        let sockets = ProxySockets::from(passed.next(), passed.next());
        Ok(Running {
            leash,
            sockets,
            strength,
            stdin: pipe::Sender::from_owned_fd(feed.into()).map_err(SpawnError::Jailer)?,
            stdout: pipe::Receiver::from_owned_fd(out.into()).map_err(SpawnError::Jailer)?,
            stderr: pipe::Receiver::from_owned_fd(err.into()).map_err(SpawnError::Jailer)?,
        })
    }

    /// Prepares a jail for a command like this one. Nothing of the command itself is used.
    pub fn prepare(&self, jail: &CommandJail) -> io::Result<()> {
        let theirs = self.prepared.prepare(Groundwork::of(jail))?;
        self.errands.send(Errand::Supervise(theirs)).map_err(|_| gone())
    }

    /// Number of prepared jails that wait for a command.
    pub fn prepared(&self) -> usize {
        self.prepared.count()
    }

    /// Sends the order to a prepared jail, or to a new one if there is none or the host has changed since.
    async fn begin(
        &self,
        groundwork: Groundwork,
        frame: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Begun, SpawnError> {
        if let Some(control) = self.prepared.take(&groundwork) {
            let leash = self.leash(control).map_err(SpawnError::Jailer)?;
            match self.order(leash, frame, descriptors).await {
                // It died while it waited. A command runs only after its supervisor has reported the start, so this
                // one did not run.
                Ok(None) | Err(SpawnError::Jailer(_)) => {}
                Ok(Some(begun)) => return Ok(begun),
                Err(error) => return Err(error),
            }
        }
        let first = groundwork.to_frame().map_err(SpawnError::Jailer)?;
        for _ in 0..TRIES {
            let leash = self.call().map_err(SpawnError::Jailer)?;
            // If the jailer cannot be reached, sending the order fails.
            let _ = leash.send(&first, &[]).await;
            if let Some(begun) = self.order(leash, frame, descriptors).await? {
                return Ok(begun);
            }
        }
        Err(SpawnError::Failed(
            "the host's mounts or system files changed during creation; try again".to_owned(),
        ))
    }

    /// `None` if the jail is stale; the command did not run.
    async fn order(
        &self,
        leash: Leash,
        frame: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Option<Begun>, SpawnError> {
        // A supervisor that rejects an order reports why before it ends, and sending then fails. If sending fails
        // for another reason, the supervisor waits for the order and would not report anything.
        let unsent = match leash.send(frame, descriptors).await {
            Err(error) if !is_end(&error) => return Err(SpawnError::Jailer(error)),
            sent => sent,
        };
        let parcel = leash.receive().await.map_err(SpawnError::Jailer)?;
        match Word::read(parcel.kind, &parcel.body).map_err(SpawnError::Jailer)? {
            Word::Started(strength) => {
                unsent.map_err(SpawnError::Jailer)?;
                Ok(Some((leash, strength, parcel.descriptors)))
            }
            Word::Stale => Ok(None),
            Word::TooWeak(missing) => Err(SpawnError::TooWeak { missing }),
            Word::Failed(why) => Err(SpawnError::Failed(why)),
            _ => Err(SpawnError::Jailer(io::Error::other("the supervisor sent a message out of turn"))),
        }
    }

    /// A connection to a new supervisor.
    fn call(&self) -> io::Result<Leash> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        self.errands.send(Errand::Supervise(theirs.into())).map_err(|_| gone())?;
        self.leash(ours)
    }

    fn leash(&self, control: UnixStream) -> io::Result<Leash> {
        Ok(Leash::new(tokio::net::UnixStream::from_std(control)?, self.errands.clone()))
    }
}

/// A running command: the connection to its supervisor, its strength, and the descriptors received with the start
/// message.
type Begun = (Leash, LayerSet, Vec<OwnedFd>);

/// The jailer process and the socket on which it waits.
struct Zygote {
    process: Child,
    socket: OwnedFd,
}

impl Zygote {
    fn start(program: &Path) -> io::Result<Self> {
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let mut command = Command::new(program);
        command.arg0(JAILER_NAME).env_clear().stdin(Stdio::from(theirs));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn()?;
        // `command` keeps the other end open, which would hide the jailer's death from us.
        drop(command);
        let zygote = Self { process, socket: ours };
        match zygote.hear_the_sign() {
            Ok(()) => Ok(zygote),
            Err(error) => {
                zygote.bury();
                Err(error)
            }
        }
    }

    fn hear_the_sign(&self) -> io::Result<()> {
        let mut socket = [PollFd::new(&self.socket, PollFlags::IN)];
        rustix::event::poll(&mut socket, Some(&PATIENCE))?;
        let has_spoken = socket.iter().all(|socket| socket.revents().contains(PollFlags::IN));
        let mut sign = [0];
        if has_spoken && passing::receive_some(self.socket.as_fd(), &mut sign, &mut Vec::new())? == 1 {
            return Ok(());
        }
        Err(io::Error::other(
            "the program does not respond as a jailer; its `main` must call `jailer_main` first",
        ))
    }

    fn hand_over(&self, order: BorrowedFd<'_>) -> io::Result<()> {
        passing::send_some(self.socket.as_fd(), &[0], &[order]).map(drop)
    }

    /// Whether sending failed because the jailer is dead.
    fn is_dead(&mut self, error: &io::Error) -> bool {
        is_end(error) || !matches!(self.process.try_wait(), Ok(None))
    }

    fn bury(self) {
        let Self { mut process, socket } = self;
        drop(socket);
        let _ = process.kill();
        let _ = process.wait();
    }
}

/// Handles requests until the last connection is closed. Prepares jails when idle.
fn keep(mut zygote: Zygote, program: &Path, inbox: &mpsc::Receiver<Errand>, prepared: &PreparedJails) {
    let mut wanted: Vec<Groundwork> = Vec::new();
    let mut has_prepared = false;
    loop {
        let patience = match (wanted.is_empty(), has_prepared) {
            (false, _) => QUIET,
            (true, true) => BETWEEN_EXPIRIES,
            (true, false) => Duration::MAX,
        };
        let theirs = match inbox.recv_timeout(patience) {
            Ok(Errand::Supervise(theirs)) => theirs,
            Ok(Errand::Refill(groundwork)) => {
                if !wanted.contains(&groundwork) {
                    wanted.push(groundwork);
                }
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {
                wanted.retain(|groundwork| prepared.wants(groundwork));
                let made = wanted.first().map(|groundwork| prepared.prepare(*groundwork));
                let Some(Ok(theirs)) = made else {
                    wanted.clear();
                    has_prepared = prepared.expire();
                    continue;
                };
                theirs
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        has_prepared = true;
        supervise(&mut zygote, theirs, program);
    }
    // The last connection is closed: without its socket the jailer ends by itself.
    zygote.bury();
}

/// Hands a connection to the jailer, or to a new jailer if it has died.
fn supervise(zygote: &mut Zygote, order: OwnedFd, program: &Path) {
    let Err(error) = zygote.hand_over(order.as_fd()) else { return };
    // Everything that the jailer started dies with it, so a living jailer is kept, and only this order fails.
    if !zygote.is_dead(&error) {
        return refuse(order, &error);
    }
    match Zygote::start(program) {
        Ok(next) => std::mem::replace(zygote, next).bury(),
        Err(error) => return refuse(order, &error),
    }
    if let Err(error) = zygote.hand_over(order.as_fd()) {
        refuse(order, &error);
    }
}

/// Whether sending failed because the receiver is gone.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected)
}

/// Reports in place of a supervisor why there is none. A caller that misses it sees the end of the connection.
fn refuse(order: OwnedFd, error: &io::Error) {
    let why = format!("cannot send the command to the jailer: {error}; try again");
    if let Ok(frame) = Word::Failed(why).to_frame() {
        let _ = passing::send(&UnixStream::from(order), &frame, &[]);
    }
}

/// The kernel counts descriptors in transit per user, including those of commands, and rejects sending if the count
/// exceeds the sender's limit of open files. A command's own limit is far below the usual hard limit.
fn make_room_for_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// How often a jail is created for one command while the host changes.
const TRIES: u32 = 3;

/// Jails are prepared only after this time without a new command.
const QUIET: Duration = Duration::from_millis(2);
const BETWEEN_EXPIRIES: Duration = Duration::from_secs(30);

/// Timeout for a program that is not a jailer and waits for input.
const PATIENCE: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

fn gone() -> io::Error {
    io::Error::other("the thread that keeps the jailer has ended")
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    /// A program that passes for a jailer, so a replacement could start.
    fn impostor(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("impostor");
        fs::write(&path, "#!/bin/sh\nprintf x >&0\nexec sleep 60\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn order_that_cannot_be_sent_fails_alone() {
        let folder = tempfile::tempdir().unwrap();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        // A full socket makes sending fail, like too many descriptors in transit do.
        while passing::send_some(ours.as_fd(), &[0; 4096], &[]).is_ok() {}
        let process = Command::new("sleep").arg("60").spawn().unwrap();
        let id = process.id();
        let (orders, inbox) = mpsc::channel();
        let program = impostor(folder.path());
        let keeper = thread::spawn(move || {
            keep(Zygote { process, socket: ours }, &program, &inbox, &PreparedJails::up_to(0));
        });
        let (caller, order) = UnixStream::pair().unwrap();
        orders.send(Errand::Supervise(order.into())).unwrap();
        let parcel = passing::receive(&caller).unwrap().expect("no reason was sent");
        let Ok(Word::Failed(why)) = Word::read(parcel.kind, &parcel.body) else { panic!("{parcel:?}") };
        assert!(why.contains("try again"), "{why}");
        let state = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // It may not have called exec yet.
        assert!(!state.is_empty() && !state.contains(") Z "), "the jailer of all others was ended: {state}");
        // When its socket is closed, the jailer counts as dead and is replaced.
        drop(theirs);
        let (caller, order) = UnixStream::pair().unwrap();
        orders.send(Errand::Supervise(order.into())).unwrap();
        drop(orders);
        keeper.join().unwrap();
        assert!(!Path::new(&format!("/proc/{id}")).exists());
        drop(caller);
    }
}
