//! The gateway's side: how is a command started?
//!
//! A thread that never ends starts the jailer, because the kernel ends the jailer when the *thread* that started it does.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::{net::UnixStream, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use tokio::net::unix::pipe;

use super::{
    CommandJail, SpawnError,
    encode::{self, Word},
    passing, rules,
    running::{Leash, Running},
};

use crate::ProxySockets;

/// A process whose name (`argv[0]`) is this one is a jailer.
pub const JAILER_NAME: &str = "toolgate-jailer";

/// The one helper process that makes jails. It is started again when it dies.
#[derive(Clone, Debug)]
pub struct Jailer {
    orders: mpsc::Sender<Order>,
}

/// The supervisor's end of a conversation, to be handed to the jailer.
type Order = OwnedFd;

impl Jailer {
    /// Starts `program` again under the jailer's name; its `main` must call [`super::jailer_main`] first of all.
    pub fn start(program: &Path) -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        let (told, outcome) = mpsc::sync_channel(1);
        let program = program.to_owned();
        thread::Builder::new().name("jailer-keeper".to_owned()).spawn(move || {
            match Zygote::start(&program) {
                Ok(zygote) => {
                    let _ = told.send(Ok(()));
                    keep(zygote, &program, &inbox);
                }
                Err(error) => drop(told.send(Err(error))),
            }
        })?;
        outcome.recv().map_err(|_| gone())??;
        Ok(Self { orders })
    }

    /// Makes the jail and starts the command in it.
    pub async fn spawn(&self, jail: CommandJail) -> Result<Running, SpawnError> {
        rules::check(&jail)?;
        let (frame, opened) = encode::order(&jail)?;
        let (stdin, feed) = io::pipe().map_err(SpawnError::Jailer)?;
        let (out, stdout) = io::pipe().map_err(SpawnError::Jailer)?;
        let (err, stderr) = io::pipe().map_err(SpawnError::Jailer)?;
        let control = self.call().map_err(SpawnError::Jailer)?;
        let leash = Leash::new(control, self.orders.clone());

        let mut descriptors = vec![stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        descriptors.extend(opened);
        let sent = leash.send(&frame, &descriptors).await;
        // Ours would keep the pipes open after the command has closed its ends.
        drop((stdin, stdout, stderr, jail));

        // A supervisor that refuses an order says why before it goes, and sending then fails.
        let mut parcel = leash.receive().await.map_err(SpawnError::Jailer)?;
        sent.map_err(SpawnError::Jailer)?;
        match Word::read(parcel.kind, &parcel.body).map_err(SpawnError::Jailer)? {
            Word::Started(strength) => {
                let mut descriptors = parcel.descriptors.drain(..);
                let leash = leash.with_handle(descriptors.next());
                let sockets = ProxySockets::from(descriptors.next(), descriptors.next());
                drop(descriptors);
                Ok(Running {
                    leash,
                    sockets,
                    strength,
                    stdin: pipe::Sender::from_owned_fd(feed.into()).map_err(SpawnError::Jailer)?,
                    stdout: pipe::Receiver::from_owned_fd(out.into()).map_err(SpawnError::Jailer)?,
                    stderr: pipe::Receiver::from_owned_fd(err.into()).map_err(SpawnError::Jailer)?,
                })
            }
            Word::TooWeak(missing) => Err(SpawnError::TooWeak { missing }),
            Word::Failed(why) => Err(SpawnError::Failed(why)),
            _ => Err(SpawnError::Jailer(io::Error::other("the supervisor spoke out of turn"))),
        }
    }

    /// A conversation with a new supervisor.
    fn call(&self) -> io::Result<tokio::net::UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        self.orders.send(theirs.into()).map_err(|_| gone())?;
        tokio::net::UnixStream::from_std(ours)
    }
}

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
        // The command keeps the other end open, and with it the hope for a sign.
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
            "the program does not answer as a jailer; its `main` must call `jailer_main` first",
        ))
    }

    fn hand_over(&self, order: BorrowedFd<'_>) -> io::Result<()> {
        passing::send_some(self.socket.as_fd(), &[0], &[order]).map(drop)
    }

    fn bury(self) {
        let Self { mut process, socket } = self;
        drop(socket);
        let _ = process.kill();
        let _ = process.wait();
    }
}

fn keep(mut zygote: Zygote, program: &Path, inbox: &mpsc::Receiver<Order>) {
    while let Ok(order) = inbox.recv() {
        if zygote.hand_over(order.as_fd()).is_ok() {
            continue;
        }
        // It has died. Whoever waits for this order hears of it by the end of the conversation if this fails too.
        match Zygote::start(program) {
            Ok(next) => std::mem::replace(&mut zygote, next).bury(),
            Err(_) => continue,
        }
        let _ = zygote.hand_over(order.as_fd());
    }
    // The last conversation is over: without its socket the jailer ends by itself.
    zygote.bury();
}

/// Guards against a program that is something else and waits for its input.
const PATIENCE: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

fn gone() -> io::Error {
    io::Error::other("the thread that keeps the jailer has ended")
}
