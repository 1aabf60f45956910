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
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
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
    /// Raises this process's limit of open files to what the host lets it have.
    pub fn start(program: &Path) -> io::Result<Self> {
        make_room_for_descriptors();
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

        // A supervisor that refuses an order says why before it goes, and sending then fails. Where sending fails for another
        // reason, it waits for the order, and would not say anything.
        let unsent = match sent {
            Err(error) if !is_end(&error) => return Err(SpawnError::Jailer(error)),
            sent => sent,
        };
        let mut parcel = leash.receive().await.map_err(SpawnError::Jailer)?;
        match Word::read(parcel.kind, &parcel.body).map_err(SpawnError::Jailer)? {
            Word::Started(strength) => {
                unsent.map_err(SpawnError::Jailer)?;
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

    /// Whether the jailer itself is why something could not be sent.
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

fn keep(mut zygote: Zygote, program: &Path, inbox: &mpsc::Receiver<Order>) {
    while let Ok(order) = inbox.recv() {
        let Err(error) = zygote.hand_over(order.as_fd()) else { continue };
        // With the jailer everything dies that it ever started: while it lives, this order fails and no other.
        if !zygote.is_dead(&error) {
            refuse(order, &error);
            continue;
        }
        match Zygote::start(program) {
            Ok(next) => std::mem::replace(&mut zygote, next).bury(),
            Err(error) => {
                refuse(order, &error);
                continue;
            }
        }
        if let Err(error) = zygote.hand_over(order.as_fd()) {
            refuse(order, &error);
        }
    }
    // The last conversation is over: without its socket the jailer ends by itself.
    zygote.bury();
}

/// Whether something could not be sent because nobody is left to receive it.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected)
}

/// Says in the supervisor's place why there is none. Whoever waits and does not hear it hears the end of the conversation.
fn refuse(order: Order, error: &io::Error) {
    let why = format!("the jailer cannot be told of the command: {error}; try again");
    if let Ok(frame) = Word::Failed(why).to_frame() {
        let _ = passing::send(&UnixStream::from(order), &frame, &[]);
    }
}

/// Descriptors on their way count for the user, those of commands too, and the kernel lets nobody send one more who has a lower
/// limit of open files than that. A command's own limit is far below what hosts let a process have.
fn make_room_for_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Guards against a program that is something else and waits for its input.
const PATIENCE: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

fn gone() -> io::Error {
    io::Error::other("the thread that keeps the jailer has ended")
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    /// A program that passes for a jailer, so that another would be started in the place of the one that lives.
    fn impostor(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("impostor");
        fs::write(&path, "#!/bin/sh\nprintf x >&0\nexec sleep 60\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn an_order_that_cannot_be_sent_fails_alone() {
        let folder = tempfile::tempdir().unwrap();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        // Full, so that the next order cannot be sent, as where too many descriptors are on their way.
        while passing::send_some(ours.as_fd(), &[0; 4096], &[]).is_ok() {}
        let process = Command::new("sleep").arg("60").spawn().unwrap();
        let id = process.id();
        let (orders, inbox) = mpsc::channel();
        let program = impostor(folder.path());
        let keeper = thread::spawn(move || keep(Zygote { process, socket: ours }, &program, &inbox));
        let (caller, order) = UnixStream::pair().unwrap();
        orders.send(order.into()).unwrap();
        let parcel = passing::receive(&caller).unwrap().expect("nobody says why");
        let Ok(Word::Failed(why)) = Word::read(parcel.kind, &parcel.body) else { panic!("{parcel:?}") };
        assert!(why.contains("try again"), "{why}");
        let state = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // It may not have come to sleep yet.
        assert!(!state.is_empty() && !state.contains(") Z "), "the jailer of all others was ended: {state}");
        // At the end of its socket it is dead, and another takes its place.
        drop(theirs);
        let (caller, order) = UnixStream::pair().unwrap();
        orders.send(order.into()).unwrap();
        drop(orders);
        keeper.join().unwrap();
        assert!(!Path::new(&format!("/proc/{id}")).exists());
        drop(caller);
    }
}
