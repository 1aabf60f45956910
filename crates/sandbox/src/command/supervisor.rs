//! Supervisor of one command, outside the jail: starts it, answers its filter, kills it, and reports.

mod answerer;
mod waiting;

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::{net::UnixStream, process::ExitStatusExt},
    process::ExitStatus,
    sync::Arc,
    time::Instant,
};

use rustix::{
    event::Timespec,
    process::{Pid, Signal},
};

use super::{
    CommandLimits, CommandUsage, Ending, Network, child,
    control_group::ControlGroup,
    encode::{Account, Order, Word},
    groundwork::Groundwork,
    init::{self, Identity},
    memory::{Memory, Watch},
    passing::{self, Parcel},
    seal::{Filters, Ground},
};
use crate::{
    Layer, LayerSet, Namespaces,
    mount_table::MountWatch,
    sys::process::{self, ExitAccount, Split},
};
use answerer::{Answerer, AnswererThread, Refusals};
use waiting::Ready;

/// Serves one order, from the groundwork to the report. The order may arrive much later than the groundwork.
pub(crate) fn run(control: &UnixStream, filters: &Arc<Filters>) {
    if let Err(error) = read_groundwork(control).and_then(|groundwork| serve(control, groundwork, filters)) {
        say(control, &Word::Failed(error.to_string()), &[]);
    }
}

fn read_groundwork(control: &UnixStream) -> io::Result<Groundwork> {
    process::restore_default(libc::SIGCHLD)?;
    // Descriptor 0 is the jailer's socket; 1 is `/dev/null`.
    rustix::stdio::dup2_stdin(rustix::stdio::stdout())?;
    let parcel = passing::receive(control)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    Groundwork::read(&parcel)
}

/// Rejects an order that does not match the prepared jail.
fn read_order(parcel: Parcel, groundwork: Groundwork) -> io::Result<Order> {
    let order = Order::read(parcel)?;
    if order.groundwork == groundwork {
        Ok(order)
    } else {
        Err(io::Error::other("the order does not match the prepared jail"))
    }
}

fn serve(control: &UnixStream, groundwork: Groundwork, filters: &Arc<Filters>) -> io::Result<()> {
    let order = if groundwork.namespaces == Namespaces::Enter {
        in_namespaces(control, groundwork, filters)?
    } else {
        passing::receive(control)?.map(|parcel| read_order(parcel, groundwork)).transpose()?
    };
    let Some(order) = order else { return Ok(()) };
    let mut required = order.required;
    // Landlock restricts ports, not hosts: without a network namespace there is no network access.
    required.add_if(Layer::NetworkNamespace, order.groundwork.network != Network::None);
    let missing: LayerSet = OF_NAMESPACES.into_iter().filter(|layer| required.has(*layer)).collect();
    if !missing.is_empty() {
        say(control, &Word::TooWeak(missing.names()), &[]);
        return Ok(());
    }
    in_a_group(control, order, filters)
}

/// Returns the order if this host denies us namespaces. `None`: the order was served, or none will come.
fn in_namespaces(
    control: &UnixStream,
    groundwork: Groundwork,
    filters: &Arc<Filters>,
) -> io::Result<Option<Order>> {
    die_with_the_jailer()?;
    // Starts before the host's mounts are copied for the jail.
    let mounts = MountWatch::begin()?;
    let (inner, theirs) = UnixStream::pair()?;
    let identity = Identity::now();
    // Root with the needed capabilities requires no user namespace. Mapped to itself, root would own the same files
    // as before; mapped to another user, it could not open granted files.
    let split = match process::fork_into(EACH) {
        Ok(split) => Ok((Identity::Kept, split)),
        Err(_) => process::fork_into(EACH | libc::CLONE_NEWUSER).map(|split| (identity, split)),
    };
    match split {
        Ok((identity, (Split::Child, _))) => {
            drop((inner, mounts));
            init::run(&groundwork, identity, &theirs, filters)
        }
        Ok((_, (Split::Parent(first), Some(handle)))) => {
            drop(theirs);
            let mut course = Course::new(first, handle, inner, Kind::Namespace);
            course.bound(&groundwork.limits);
            let Some(parcel) = course.wait_for_order(control, &mounts)? else {
                course.kill();
                course.bury();
                return Ok(None);
            };
            drop(mounts);
            if course.has_no_namespaces() {
                return read_order(parcel, groundwork).map(Some);
            }
            course.hand_over(&parcel);
            let order = read_order(parcel, groundwork)?;
            course.answer_with(Answerer::new(&order, Ground::View, filters, control)?);
            // The gateway sees the end of the output only after all copies are closed.
            drop(order);
            course.follow(control)?;
            course.give_account(control);
            course.bury();
            Ok(None)
        }
        _ => passing::receive(control)?.map(|parcel| read_order(parcel, groundwork)).transpose(),
    }
}

fn in_a_group(control: &UnixStream, order: Order, filters: &Arc<Filters>) -> io::Result<()> {
    let (inner, theirs) = UnixStream::pair()?;
    // We must survive to kill the group; we notice the gateway's end on its socket.
    rustix::process::set_parent_process_death_signal(None)?;
    // Orphans become our children, so we can wait until none is left.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let (Split::Parent(first), Some(handle)) = process::fork_into(0)? else {
        drop(inner);
        child::run_in_a_group(&order, &theirs, filters)
    };
    drop(theirs);
    let mut course = Course::new(first, handle, inner, Kind::Group);
    course.answer_with(Answerer::new(&order, Ground::Host, filters, control)?);
    course.bound(&order.groundwork.limits);
    drop(order);
    course.follow(control)?;
    course.end_the_others();
    course.give_account(control);
    Ok(())
}

fn die_with_the_jailer() -> io::Result<()> {
    let jailer = rustix::process::getppid();
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() == jailer { Ok(()) } else { Err(io::Error::other("the jailer has ended")) }
}

/// The unit that is killed as a whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Namespace,
    Group,
}

/// The life cycle of one command.
struct Course {
    first: Pid,
    handle: OwnedFd,
    inner: Option<UnixStream>,
    /// From the order until the command runs.
    answerer: Option<Answerer>,
    /// From the time at which the jail is ready until the command runs.
    answerer_thread: Option<AnswererThread>,
    refusals: Option<Arc<Refusals>>,
    kind: Kind,
    sockets: Vec<OwnedFd>,
    /// A `/proc` that shows the processes of its namespace.
    processes: Option<OwnedFd>,
    memory: Memory,
    started: Instant,
    stage: Stage,
    ended: Option<ExitAccount>,
}

enum Stage {
    /// Before the jail waits for an order.
    Preparing,
    Making,
    Running,
    /// The first failure reported.
    Failed(Word),
    /// Failed while running.
    Broken(String),
}

impl Course {
    fn new(first: Pid, handle: OwnedFd, inner: UnixStream, kind: Kind) -> Self {
        Self {
            first,
            handle,
            inner: Some(inner),
            refusals: None,
            answerer: None,
            answerer_thread: None,
            kind,
            sockets: Vec::new(),
            processes: None,
            memory: Memory::new(u64::MAX, None),
            started: Instant::now(),
            stage: match kind {
                Kind::Namespace => Stage::Preparing,
                Kind::Group => Stage::Making,
            },
            ended: None,
        }
    }

    fn answer_with(&mut self, answerer: Answerer) {
        self.refusals = Some(answerer.refusals());
        self.answerer = Some(answerer);
    }

    /// Applies the joint limits, and lets the jail continue.
    fn bound(&mut self, limits: &CommandLimits) {
        let group = ControlGroup::make(limits).filter(|group| group.take_in(self.first).is_ok());
        if let Some(inner) = &self.inner {
            // The jail starts no process before this, so none is outside the group.
            let _ = passing::send(inner, &[u8::from(group.is_some())], &[]);
        }
        self.memory = Memory::new(limits.memory_bytes, group);
    }

    /// From the start to the end of the last process that is not ours.
    fn follow(&mut self, control: &UnixStream) -> io::Result<()> {
        let mut is_heard = true;
        loop {
            let ready = self.wait(is_heard.then_some(control))?;
            if ready.control && passing::receive(control).is_ok_and(|word| word.is_none()) {
                is_heard = false;
                self.kill();
            }
            if ready.inner {
                self.hear(control);
            }
            if self.ended.is_some() {
                return Ok(());
            }
            if ready.ended {
                break;
            }
            match self.memory.is_out() {
                Ok(false) => {}
                Ok(true) => self.kill(),
                Err(error) => {
                    self.stage = Stage::Broken(format!("cannot measure its memory: {error}"));
                    self.kill();
                }
            }
        }
        let ended = process::wait_with_usage(self.first)?;
        // In a namespace this is the first process, which was killed before it could report the command's end.
        let killed = ExitAccount { status: libc::SIGKILL, ..ended };
        // Ends, because all possible senders are gone.
        while self.inner.is_some() {
            self.hear(control);
        }
        if self.ended.is_none() {
            self.ended = Some(if self.kind == Kind::Group { ended } else { killed });
        }
        Ok(())
    }

    fn wait(&self, control: Option<&UnixStream>) -> io::Result<Ready> {
        self.poll(control, None, Some(&LOOK))
    }

    /// Handles one message from the jail.
    fn hear(&mut self, control: &UnixStream) {
        let Some(inner) = &self.inner else { return };
        let heard = passing::receive(inner).and_then(|parcel| {
            parcel.map(|parcel| Ok((Word::read(parcel.kind, &parcel.body)?, parcel))).transpose()
        });
        let Ok(Some((word, Parcel { descriptors, .. }))) = heard else {
            self.inner = None;
            return;
        };
        match (word, &self.stage) {
            (Word::Sockets, Stage::Preparing) => self.sockets = descriptors,
            (Word::Processes, Stage::Preparing) => self.processes = descriptors.into_iter().next(),
            (Word::Ready, Stage::Preparing) => {
                self.stage = Stage::Making;
                self.watch_and_answer();
            }
            (Word::Sealed(strength), Stage::Making) => {
                self.let_it_run(strength, descriptors.into_iter().next(), control);
            }
            // Only its first process is left. Its end, with all the unmounts, need not be awaited.
            (Word::Exit(ended), _) => self.ended = Some(ended),
            (word @ (Word::Failed(_) | Word::TooWeak(_) | Word::Stale), Stage::Preparing | Stage::Making) => {
                self.stage = Stage::Failed(word);
            }
            (Word::Failed(why), Stage::Running) => self.stage = Stage::Broken(why),
            _ => {}
        }
    }

    /// Checks that the memory of the jail can be counted, and starts the thread that answers its filter. A prepared jail does this
    /// before the order comes.
    fn watch_and_answer(&mut self) {
        // Orphans become children of process 1, or, where there is none, ours.
        let top = match self.kind {
            Kind::Namespace => self.first,
            Kind::Group => rustix::process::getpid(),
        };
        let watch =
            self.processes.take().map_or_else(|| Watch::descendants_of(top), |proc| Ok(Watch::all_in(proc)));
        if self.memory.count(watch).is_err() {
            self.stage = Stage::Failed(Word::TooWeak(LayerSet::of(&[Layer::MemoryLimit]).names()));
            return self.kill();
        }
        match AnswererThread::start() {
            Ok(thread) => self.answerer_thread = Some(thread),
            Err(error) => {
                self.stage = Stage::Failed(Word::Failed(format!("cannot answer its filter: {error}")));
                self.kill();
            }
        }
    }

    /// The jail is sealed and waits for permission to run the command.
    fn let_it_run(&mut self, mut strength: LayerSet, listener: Option<OwnedFd>, control: &UnixStream) {
        if self.kind == Kind::Group {
            self.watch_and_answer();
        }
        if matches!(self.stage, Stage::Failed(_)) {
            return;
        }
        strength.add(Layer::MemoryLimit);
        let answering = match (self.answerer_thread.take(), self.answerer.take(), listener) {
            (Some(thread), Some(answerer), Some(listener)) => thread.answer(answerer, listener),
            _ => Err(io::Error::other("the filter came without its descriptor")),
        };
        if let Err(error) = answering {
            self.stage = Stage::Failed(Word::Failed(format!("cannot answer its filter: {error}")));
            return self.kill();
        }
        let mut passed = vec![self.handle.as_fd()];
        passed.extend(self.sockets.iter().map(AsFd::as_fd));
        say(control, &Word::Started(strength), &passed);
        self.stage = Stage::Running;
        self.memory.command_begins();
        if let Some(inner) = &self.inner {
            let _ = passing::send(inner, &[0], &[]);
        }
        self.sockets.clear();
    }

    fn kill(&self) {
        self.memory.kill_group();
        let _ = rustix::process::pidfd_send_signal(&self.handle, Signal::KILL);
        if self.kind == Kind::Group {
            let _ = rustix::process::kill_process_group(self.first, Signal::KILL);
        }
    }

    /// Reaps a first process without remaining descendants, and drops everything held for it.
    fn bury(self) {
        let _ = rustix::process::waitpid(Some(self.first), rustix::process::WaitOptions::empty());
    }

    /// Kills and reaps the rest of a process group. In a namespace its first process does this, or the kernel.
    fn end_the_others(&self) {
        loop {
            let _ = rustix::process::kill_process_group(self.first, Signal::KILL);
            match rustix::process::wait(rustix::process::WaitOptions::empty()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    fn has_no_namespaces(&self) -> bool {
        matches!(&self.stage, Stage::Failed(Word::TooWeak(missing)) if missing.is_empty())
    }

    fn give_account(&mut self, control: &UnixStream) {
        let ending = match &mut self.stage {
            Stage::Preparing | Stage::Making => {
                return say(control, &Word::Failed("the jail ended before the command ran".to_owned()), &[]);
            }
            Stage::Failed(word) => return say(control, word, &[]),
            Stage::Broken(why) => Ending::JailFailed(std::mem::take(why)),
            Stage::Running if self.memory.was_out() => Ending::OutOfMemory,
            Stage::Running => ending(self.ended),
        };
        let ended = self.ended;
        let usage = CommandUsage {
            elapsed: self.started.elapsed(),
            cpu: ended.map(|ended| ended.cpu).unwrap_or_default(),
            // The kernel's accounting misses processes that were killed together.
            peak_memory: ended.map(|ended| ended.peak_memory).unwrap_or_default().max(self.memory.most()),
        };
        if let Some(refusals) = &self.refusals {
            refusals.close(|refused| Account { ending, usage, refused });
        }
    }
}

fn ending(ended: Option<ExitAccount>) -> Ending {
    let Some(status) = ended.map(|ended| ExitStatus::from_raw(ended.status)) else {
        return Ending::Signalled(libc::SIGKILL);
    };
    match (status.code().map(u8::try_from), status.signal()) {
        (Some(Ok(code)), _) => Ending::Exited(code),
        (_, Some(signal)) => Ending::Signalled(signal),
        _ => Ending::JailFailed("the command ended with an unknown status".to_owned()),
    }
}

/// Sends a message. Errors are ignored: a gateway that is gone needs no message.
fn say(control: &UnixStream, word: &Word, descriptors: &[BorrowedFd<'_>]) {
    if let Ok(frame) = word.to_frame() {
        let _ = passing::send(control, &frame, descriptors);
    }
}

const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

const OF_NAMESPACES: [Layer; 4] =
    [Layer::PrivateView, Layer::PidNamespace, Layer::NetworkNamespace, Layer::IpcNamespace];

/// The cgroup namespace is entered later, from inside the group.
const EACH: i32 =
    libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
