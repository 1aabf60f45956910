//! Outside the jail, one for each command: starts it, answers its filter, ends it, gives account.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::{net::UnixStream, process::ExitStatusExt},
    process::ExitStatus,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    process::{Pid, Signal},
};

use super::{
    CommandLimits, CommandUsage, Ending, Network, child,
    control_group::ControlGroup,
    encode::{Account, Order, Word},
    init::{self, Identity},
    memory,
    notices::Notices,
    passing::{self, Parcel},
    seal::{Filters, Ground},
    walls::Wall,
};
use crate::{
    Namespaces,
    sys::{
        filter,
        process::{self, Ended, Split},
    },
};

/// Serves one order from its reading to its report.
pub(crate) fn run(control: &UnixStream, filters: &Filters) {
    if let Err(error) = read_order(control).and_then(|order| serve(control, order, filters)) {
        say(control, &Word::Failed(error.to_string()), &[]);
    }
}

fn read_order(control: &UnixStream) -> io::Result<Order> {
    process::heed(libc::SIGCHLD)?;
    // Descriptor 0 is the jailer's socket; 1 leads nowhere.
    rustix::stdio::dup2_stdin(rustix::stdio::stdout())?;
    let parcel = passing::receive(control)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    Order::read(parcel)
}

fn serve(control: &UnixStream, order: Order, filters: &Filters) -> io::Result<()> {
    let order = if order.namespaces == Namespaces::Enter {
        match in_namespaces(control, order, filters)? {
            None => return Ok(()),
            Some(order) => order,
        }
    } else {
        order
    };
    let is_proxied = order.network != Network::None;
    let missing: Vec<String> = OF_NAMESPACES
        .into_iter()
        // Landlock knows ports, not hosts: without a network of its own there is none.
        .filter(|wall| order.asked.asks(*wall) || is_proxied && *wall == Wall::NetworkNamespace)
        .map(|wall| wall.name().to_owned())
        .collect();
    if !missing.is_empty() {
        say(control, &Word::TooWeak(missing), &[]);
        return Ok(());
    }
    in_a_group(control, order, filters)
}

/// Gives the order back if this host has no namespaces for us.
fn in_namespaces(control: &UnixStream, order: Order, filters: &Filters) -> io::Result<Option<Order>> {
    die_with_the_jailer()?;
    let (inner, theirs) = UnixStream::pair()?;
    let identity = Identity::now();
    // With the right to it no user namespace is needed. Mapped to itself, root would own the same files as before; mapped to
    // another, it could not open what it was granted.
    let split = match process::fork_into(EACH) {
        Ok(split) => Ok((Identity::Kept, split)),
        Err(_) => process::fork_into(EACH | libc::CLONE_NEWUSER).map(|split| (identity, split)),
    };
    match split {
        Ok((identity, (Split::Child, _))) => {
            drop(inner);
            init::run(order, identity, &theirs, filters)
        }
        Ok((_, (Split::Parent(first), Some(handle)))) => {
            drop(theirs);
            let notices = Notices::new(&order, Ground::View, filters.for_order(&order, Ground::View)?);
            let mut course = Course::new(first, handle, inner, notices, Kind::Namespace);
            course.bound(&order.limits);
            course.follow(control, filters)?;
            if course.has_no_namespaces() {
                return Ok(Some(order));
            }
            // The gateway hears the end of the output only when nobody holds it any more.
            drop(order);
            course.give_account(control);
            course.bury();
            Ok(None)
        }
        _ => Ok(Some(order)),
    }
}

fn in_a_group(control: &UnixStream, order: Order, filters: &Filters) -> io::Result<()> {
    let (inner, theirs) = UnixStream::pair()?;
    // We must live to kill the group: the end of the gateway is heard on its socket.
    rustix::process::set_parent_process_death_signal(None)?;
    // Whoever loses its parent becomes our child, so that we can wait until nobody is left.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let (Split::Parent(first), Some(handle)) = process::fork_into(0)? else {
        drop(inner);
        child::run_in_a_group(&order, &theirs, filters)
    };
    drop(theirs);
    let notices = Notices::new(&order, Ground::Host, filters.for_order(&order, Ground::Host)?);
    let mut course = Course::new(first, handle, inner, notices, Kind::Group);
    course.bound(&order.limits);
    drop(order);
    course.follow(control, filters)?;
    course.end_the_others();
    course.give_account(control);
    Ok(())
}

fn die_with_the_jailer() -> io::Result<()> {
    let jailer = rustix::process::getppid();
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() == jailer { Ok(()) } else { Err(io::Error::other("the jailer has ended")) }
}

/// What takes everything with it when it ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Namespace,
    Group,
}

/// The life of one command.
struct Course {
    first: Pid,
    handle: OwnedFd,
    inner: Option<UnixStream>,
    listener: Option<OwnedFd>,
    notices: Notices,
    kind: Kind,
    sockets: Vec<OwnedFd>,
    memory: Memory,
    started: Instant,
    stage: Stage,
    ended: Option<Ended>,
}

enum Stage {
    Making,
    Running,
    /// The first trouble that was told.
    Failed(Word),
    /// Failed while running.
    Broken(String),
}

impl Course {
    fn new(first: Pid, handle: OwnedFd, inner: UnixStream, notices: Notices, kind: Kind) -> Self {
        Self {
            first,
            handle,
            inner: Some(inner),
            listener: None,
            notices,
            kind,
            sockets: Vec::new(),
            memory: Memory { group: None, limit: u64::MAX, looked: Instant::now(), most: 0 },
            started: Instant::now(),
            stage: Stage::Making,
            ended: None,
        }
    }

    /// Sees to it that all processes together keep to the limits, and lets the jail go on.
    fn bound(&mut self, limits: &CommandLimits) {
        self.memory.limit = limits.memory_bytes;
        let group = ControlGroup::make(limits).filter(|group| group.take_in(self.first).is_ok());
        if let Some(inner) = &self.inner {
            // Before this the jail starts nobody, so that nobody is outside the group.
            let _ = passing::send(inner, &[u8::from(group.is_some())], &[]);
        }
        self.memory.group = group;
    }

    /// From the start to the end of the last process that is not ours.
    fn follow(&mut self, control: &UnixStream, filters: &Filters) -> io::Result<()> {
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
            if let (Some(state), Some(listener)) = (ready.listener, &self.listener) {
                // Whoever could ask is gone when there is an end and no question.
                let may_ask =
                    state.contains(PollFlags::IN) && self.notices.answer_next(listener.as_fd(), filters);
                if !may_ask {
                    self.listener = None;
                }
                for refused in self.notices.news() {
                    say(control, &Word::Refused(refused), &[]);
                }
            }
            if self.ended.is_some() {
                return Ok(());
            }
            if ready.ended {
                break;
            }
            // Orphans become children of process 1, or, where there is none, ours.
            let top = match self.kind {
                Kind::Namespace => self.first,
                Kind::Group => rustix::process::getpid(),
            };
            if self.memory.is_out(top) {
                self.kill();
            }
        }
        let ended = process::wait_with_account(self.first)?;
        // In a namespace this is the first process, which was killed before it could tell of the command's end.
        let killed = Ended { status: libc::SIGKILL, ..ended };
        // Everybody who could speak is gone, so that this ends.
        while self.inner.is_some() {
            self.hear(control);
        }
        if self.ended.is_none() {
            self.ended = Some(if self.kind == Kind::Group { ended } else { killed });
        }
        Ok(())
    }

    fn wait(&self, control: Option<&UnixStream>) -> io::Result<Ready> {
        let sources: [Option<BorrowedFd<'_>>; 4] = [
            control.map(AsFd::as_fd),
            self.inner.as_ref().map(AsFd::as_fd),
            self.listener.as_ref().map(AsFd::as_fd),
            Some(self.handle.as_fd()),
        ];
        let mut polled: Vec<PollFd<'_>> =
            sources.iter().flatten().map(|source| PollFd::from_borrowed_fd(*source, PollFlags::IN)).collect();
        loop {
            match rustix::event::poll(&mut polled, Some(&LOOK)) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => break,
            }
        }
        let mut states = polled.iter().map(PollFd::revents);
        let mut next = |source: &Option<BorrowedFd<'_>>| {
            source.as_ref().and_then(|_| states.next()).filter(|state| !state.is_empty())
        };
        let [control, inner, listener, handle] = &sources;
        Ok(Ready {
            control: next(control).is_some(),
            inner: next(inner).is_some(),
            listener: next(listener),
            ended: next(handle).is_some(),
        })
    }

    /// Takes one word from the jail.
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
            (Word::Sockets, Stage::Making) => self.sockets = descriptors,
            (Word::Sealed(strength), Stage::Making) => {
                self.listener = descriptors.into_iter().next();
                if let Some(listener) = &self.listener {
                    filter::answer_in_turn(listener.as_fd());
                }
                let mut passed = vec![self.handle.as_fd()];
                passed.extend(self.sockets.iter().map(AsFd::as_fd));
                say(control, &Word::Started(strength), &passed);
                self.stage = Stage::Running;
                let _ = passing::send(inner, &[0], &[]);
                self.sockets.clear();
            }
            // Nobody is left but its first process, whose end, with all the mounts, need not be waited for.
            (Word::Exit(ended), _) => self.ended = Some(ended),
            (word @ (Word::Failed(_) | Word::TooWeak(_)), Stage::Making) => self.stage = Stage::Failed(word),
            (Word::Failed(why), Stage::Running) => self.stage = Stage::Broken(why),
            _ => {}
        }
    }

    fn kill(&self) {
        if let Some(group) = &self.memory.group {
            group.kill();
        }
        let _ = rustix::process::pidfd_send_signal(&self.handle, Signal::KILL);
        if self.kind == Kind::Group {
            let _ = rustix::process::kill_process_group(self.first, Signal::KILL);
        }
    }

    /// Waits for the end of a first process that has nobody left. What it held goes with it.
    fn bury(self) {
        let _ = rustix::process::waitpid(Some(self.first), rustix::process::WaitOptions::empty());
    }

    /// Those of a group. In a namespace its first process does this, or the kernel.
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
            Stage::Making => {
                return say(control, &Word::Failed("it ended before the command ran".to_owned()), &[]);
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
            // Of those who were killed together nobody tells the kernel's own account.
            peak_memory: ended.map(|ended| ended.peak_memory).unwrap_or_default().max(self.memory.most()),
        };
        let refused = self.notices.take_list();
        say(control, &Word::Report(Account { ending, usage, refused }), &[]);
    }
}

/// What all processes hold together.
struct Memory {
    group: Option<ControlGroup>,
    limit: u64,
    looked: Instant,
    /// That was seen at one look.
    most: u64,
}

impl Memory {
    /// Looks now and then; in a group the kernel does.
    fn is_out(&mut self, top: Pid) -> bool {
        if self.group.is_none() && self.most <= self.limit && self.looked.elapsed() >= BETWEEN_LOOKS {
            self.most = self.most.max(memory::held(top, self.limit));
            self.looked = Instant::now();
        }
        self.most > self.limit
    }

    fn was_out(&self) -> bool {
        self.most > self.limit || self.ran_out_in_group()
    }

    /// A group that ran out of memory held all that it may.
    fn most(&self) -> u64 {
        if self.ran_out_in_group() { self.most.max(self.limit) } else { self.most }
    }

    fn ran_out_in_group(&self) -> bool {
        self.group.as_ref().is_some_and(ControlGroup::ran_out_of_memory)
    }
}

/// Where something can be read.
struct Ready {
    control: bool,
    inner: bool,
    listener: Option<PollFlags>,
    ended: bool,
}

fn ending(ended: Option<Ended>) -> Ending {
    let Some(status) = ended.map(|ended| ExitStatus::from_raw(ended.status)) else {
        return Ending::Signalled(libc::SIGKILL);
    };
    match (status.code().map(u8::try_from), status.signal()) {
        (Some(Ok(code)), _) => Ending::Exited(code),
        (_, Some(signal)) => Ending::Signalled(signal),
        _ => Ending::JailFailed("the command ended in no known way".to_owned()),
    }
}

/// A gateway that no longer listens has nothing to be told.
fn say(control: &UnixStream, word: &Word, descriptors: &[BorrowedFd<'_>]) {
    if let Ok(frame) = word.to_frame() {
        let _ = passing::send(control, &frame, descriptors);
    }
}

const BETWEEN_LOOKS: Duration = Duration::from_millis(40);
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

const OF_NAMESPACES: [Wall; 4] =
    [Wall::PrivateView, Wall::PidNamespace, Wall::NetworkNamespace, Wall::IpcNamespace];

/// That of control groups is entered later, from the group.
const EACH: i32 =
    libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_ran_out_of_memory_held_all_that_it_may() {
        let above = tempfile::tempdir().unwrap();
        let limits = CommandLimits {
            memory_bytes: 1 << 20,
            cpu_seconds: 1,
            processes: 1,
            open_files: 1,
            file_bytes: 1,
        };
        let group = ControlGroup::make_in(above.path(), "one", &limits).unwrap();
        let memory =
            Memory { group: Some(group), limit: limits.memory_bytes, looked: Instant::now(), most: 0 };
        assert_eq!((memory.was_out(), memory.most()), (false, 0));
        std::fs::write(above.path().join("one/memory.events"), "oom 1\noom_kill 3\n").unwrap();
        assert_eq!((memory.was_out(), memory.most()), (true, 1 << 20));
    }
}
