//! Answers the notifications of the filter, and records what the command was denied.
//!
//! This only reports: the filter, the view and Landlock enforce. A command can change a path after it was read, but
//! gains only a wrong line in the report.

mod caller;
mod counts;
mod granted;
mod list;

use std::{collections::BTreeMap, net::SocketAddr, os::fd::BorrowedFd, sync::Arc};

use rustix::process::Pid;

use super::{
    Attempt, Network, Refused,
    encode::Order,
    passing,
    seal::{Filters, Ground},
};
use crate::{
    filter::{CommandFilter, Conditions, Countable, CountedResource, SkipCondition, Sockets, WatchedCall},
    sys::{
        self,
        filter::{self, Notice, NoticeReply},
    },
};
use caller::SyscallCaller;
use counts::Counts;
use granted::{Granted, Question, Wish};

pub(crate) use list::{List, Listed};

/// State for one command.
#[derive(Debug)]
pub(crate) struct Notices {
    /// Calls that are allowed and only looked at. Every other question is a refusal.
    watched: Arc<BTreeMap<u32, Conditions>>,
    counted: Arc<[Countable]>,
    counts: Counts,
    network: Network,
    granted: Granted,
}

impl Notices {
    pub(crate) fn new(order: &Order, ground: Ground, filter: &CommandFilter) -> Self {
        Self {
            watched: Arc::clone(&filter.watched),
            counted: Arc::clone(&filter.counted),
            counts: Counts::of(&order.groundwork.limits),
            network: order.groundwork.network,
            granted: Granted::of(order, ground),
        }
    }

    /// Returns whether more notifications may come. Passes denials to `add` before the calling process continues.
    pub(crate) fn answer_next(
        &mut self,
        listener: BorrowedFd<'_>,
        filters: &Filters,
        mut add: impl FnMut(Refused),
    ) -> bool {
        let notice = match filter::next_notice(listener) {
            Ok(notice) => notice,
            // The calling process died before we received it, or we were interrupted.
            Err(error) => return matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)),
        };
        let number = notice.data.nr.cast_unsigned();
        let name = filters.name(number);
        let counted = self.counted.iter().find_map(|row| row.of(number, notice.data.args));
        let (refused, answer) = if let Some(what) = counted {
            self.count(what, name, &notice)
        } else if self.watched.get(&number).is_some_and(|conditions| conditions.hold(notice.data.args)) {
            let row = WATCHED.iter().find(|watched| watched.name == name);
            (row.map(|row| self.look(row, &notice)).unwrap_or_default(), NoticeReply::Continue)
        } else if is_never_missed(name, &notice) {
            (Vec::new(), NoticeReply::Refuse { errno: libc::EINVAL })
        } else {
            (vec![Some(refuse(name, &notice))], NoticeReply::Refuse { errno: libc::EPERM })
        };
        for one in refused.into_iter().flatten() {
            // If the process has ended, its id may belong to another process, whose memory we would have read.
            if filter::still_waits(listener, notice.id) {
                add(one);
            }
        }
        filter::answer(listener, notice.id, answer).is_ok()
    }

    fn count(
        &mut self,
        what: CountedResource,
        name: &str,
        notice: &Notice,
    ) -> (Vec<Option<Refused>>, NoticeReply) {
        let [_, _, third, ..] = notice.data.args;
        let process = Pid::from_raw(notice.pid.cast_signed().max(0));
        if what == CountedResource::Waits && process.is_some_and(|it| counts::is_never_waited_for(it, third))
        {
            return (Vec::new(), NoticeReply::Refuse { errno: libc::EPERM });
        }
        let (answer, detail) = self.counts.one_more(what);
        (vec![detail.map(|detail| Refused::Syscall { name: name.to_owned(), detail })], answer)
    }

    fn look(&self, watched: &Watched, notice: &Notice) -> Vec<Option<Refused>> {
        let Some(process) = Pid::from_raw(notice.pid.cast_signed().max(0)) else { return Vec::new() };
        let caller = SyscallCaller::new(process, notice.data.args);
        match watched.what {
            What::Open { place, flags } => vec![self.path(&caller, place, wish(caller.argument(flags)))],
            What::Open2 { place, how } => {
                let flags = caller.number_at(caller.argument(how)).unwrap_or(0);
                vec![self.path(&caller, place, wish(flags))]
            }
            What::Path(place, attempt) => vec![self.path(&caller, place, Wish::For(attempt))],
            What::Make(place) => vec![self.path(&caller, place, Wish::Make)],
            What::Two(one, other) => {
                let wish = Wish::For(Attempt::Write);
                vec![self.path(&caller, one, wish), self.path(&caller, other, wish)]
            }
            What::Access { place, mode } => {
                let (attempt, question) = asked(caller.argument(mode));
                vec![self.question(&caller, place, attempt, question)]
            }
            What::Ask(place, question) => vec![self.question(&caller, place, Attempt::Read, question)],
            What::Connect => vec![self.address(caller.address())],
            What::Datagram { address, length } => {
                vec![self.datagram(caller.address_at(caller.argument(address), caller.argument(length)))]
            }
            What::Message => vec![self.datagram(caller.address_of_message(caller.argument(1)))],
            What::Messages => {
                caller.addresses_of_messages().map(|address| self.datagram(Some(address))).collect()
            }
            What::Listen => vec![listening(&caller)],
        }
    }

    fn path(&self, caller: &SyscallCaller, place: Place, wish: Wish) -> Option<Refused> {
        let given = caller.given(place)?;
        // An entry of an open directory is as readable as the directory, unless it is hidden. Programs that walk
        // trees open nearly everything this way, and resolving the whole path is the slowest step.
        let is_walk = wish == Wish::For(Attempt::Read) && caller.is_name_in_open_folder(place, &given);
        if is_walk && !self.granted.hides_something_called(&given) {
            return None;
        }
        let path = caller.whole(place, &given)?;
        if let Some(access) = self.granted.denies(&path, wish) {
            return Some(Refused::Path { path, access });
        }
        // A symlink in a bind may lead to a path that is not granted. Symlinks in system directories do so, too,
        // but programs do not depend on them.
        let link = Some(path).filter(|path| self.granted.is_in_a_bind(path))?;
        let path = granted::behind_links(&link, wish)?;
        self.granted.denies(&path, wish).map(|access| Refused::Path { path, access })
    }

    /// For calls that query a path without opening it. Only a view can hide the answer from them.
    fn question(
        &self,
        caller: &SyscallCaller,
        place: Place,
        attempt: Attempt,
        question: Question,
    ) -> Option<Refused> {
        if !self.granted.has_own_view() {
            return None;
        }
        let given = caller.given(place)?;
        if caller.is_name_in_open_folder(place, &given) && !self.granted.hides_something_called(&given) {
            return None;
        }
        let path = caller.whole(place, &given)?;
        let is_refused = self.granted.keeps_from(&path, attempt, question);
        is_refused.then_some(Refused::Path { path, access: attempt })
    }

    /// Datagrams to the jail's own loopback are delivered.
    fn datagram(&self, address: Option<SocketAddr>) -> Option<Refused> {
        self.address(address.filter(|address| !address.ip().to_canonical().is_loopback()))
    }

    fn address(&self, address: Option<SocketAddr>) -> Option<Refused> {
        let address = address?;
        let Network::Proxied { http_port } = self.network else { return None };
        let is_here = address.ip().to_canonical().is_loopback();
        let is_ours = is_here && [http_port, DNS_PORT].contains(&address.port());
        (!is_ours).then(|| Refused::Address { address: address.to_string() })
    }
}

/// Programs that make themselves non-dumpable continue without it, so a report would only be noise.
fn is_never_missed(name: &str, notice: &Notice) -> bool {
    let [option, ..] = notice.data.args;
    name == "prctl" && option & 0xffff_ffff == u64::from(libc::PR_SET_DUMPABLE.cast_unsigned())
}

fn refuse(name: &str, notice: &Notice) -> Refused {
    let [first, second, ..] = notice.data.args;
    let detail = match name {
        "socket" if is_lookup_of_names(first, second) => return Refused::LookUp,
        "socket" | "socketpair" => family(first),
        "ioctl" => format!("request {second:#x}"),
        "prctl" | "personality" => format!("{first:#x}"),
        "clone" => "new namespace".to_owned(),
        _ => String::new(),
    };
    Refused::Syscall { name: name.to_owned(), detail }
}

/// Landlock forbids listening. Binding a stream socket is a preparation for it; datagram sockets may bind.
fn listening(caller: &SyscallCaller) -> Option<Refused> {
    let address = caller.address()?;
    let is_judged = sys::landlock_abi().is_some_and(|abi| abi >= FIRST_WITH_PORTS);
    (is_judged && caller.is_stream())
        .then(|| Refused::Syscall { name: "bind".to_owned(), detail: address.to_string() })
}

/// System calls that are watched when denials are traced.
pub(crate) fn looks(sockets: Sockets) -> Vec<WatchedCall> {
    let is_seen = |watched: &&Watched| sockets == Sockets::Internet || !watched.what.is_of_networks();
    let look = |watched: &Watched| WatchedCall {
        call: watched.name,
        unless: match watched.what {
            What::Datagram { length, .. } => {
                u32::try_from(length).ok().map(|argument| SkipCondition { argument, value: 0 })
            }
            // The jail sends the listener's descriptor with this call; before that, no supervisor could answer.
            What::Message => Some(SkipCondition { argument: 2, value: passing::FLAGS.bits() }),
            _ => None,
        },
    };
    WATCHED.iter().filter(is_seen).map(look).collect()
}

/// Position of a path among the arguments, and of its directory descriptor, if any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    path: usize,
    folder: Option<usize>,
}

struct Watched {
    name: &'static str,
    what: What,
}

enum What {
    Open { place: Place, flags: usize },
    Open2 { place: Place, how: usize },
    Path(Place, Attempt),
    Make(Place),
    Two(Place, Place),
    Access { place: Place, mode: usize },
    Ask(Place, Question),
    Connect,
    Datagram { address: usize, length: usize },
    Message,
    Messages,
    Listen,
}

impl What {
    fn is_of_networks(&self) -> bool {
        matches!(self, Self::Connect | Self::Datagram { .. } | Self::Message | Self::Messages | Self::Listen)
    }
}

fn wish(flags: u64) -> Wish {
    let flags = libc::c_int::try_from(flags & 0x7fff_ffff).unwrap_or(0);
    let has = |all: libc::c_int| flags & all == all;
    if has(libc::O_CREAT | libc::O_EXCL) {
        Wish::Make
    } else if flags & libc::O_ACCMODE != libc::O_RDONLY || has(libc::O_TRUNC) {
        Wish::For(Attempt::Write)
    } else if has(libc::O_CREAT) {
        Wish::ReadOrMake
    } else {
        Wish::For(Attempt::Read)
    }
}

/// Decodes the mode of `access` and similar calls. Executability also depends on the mount and is not reported.
fn asked(mode: u64) -> (Attempt, Question) {
    let has = |right: libc::c_int| mode & u64::from(right.cast_unsigned()) != 0;
    let attempt = if has(libc::W_OK) { Attempt::Write } else { Attempt::Read };
    let is_bare = !has(libc::R_OK | libc::W_OK | libc::X_OK);
    (attempt, if is_bare { Question::IsThere } else { Question::IsUsable })
}

/// C libraries try a name service daemon this way, which few hosts have, before they read files. Other programs
/// connect to daemons the same way.
fn is_lookup_of_names(family: u64, kind: u64) -> bool {
    let usual = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    family == u64::from(libc::AF_UNIX.cast_unsigned()) && kind == u64::from(usual.cast_unsigned())
}

fn family(number: u64) -> String {
    let known = FAMILIES.iter().find(|(known, _)| u64::from(known.cast_unsigned()) == number);
    known.map_or_else(|| format!("family {number}"), |(_, name)| (*name).to_owned())
}

const fn at(path: usize) -> Place {
    Place { path, folder: None }
}

const fn below(folder: usize, path: usize) -> Place {
    Place { path, folder: Some(folder) }
}

const fn row(name: &'static str, what: What) -> Watched {
    Watched { name, what }
}

const WATCHED: &[Watched] = &[
    row("open", What::Open { place: at(0), flags: 1 }),
    row("openat", What::Open { place: below(0, 1), flags: 2 }),
    row("openat2", What::Open2 { place: below(0, 1), how: 2 }),
    row("creat", What::Path(at(0), Attempt::Write)),
    row("truncate", What::Path(at(0), Attempt::Write)),
    row("execve", What::Path(at(0), Attempt::Execute)),
    row("execveat", What::Path(below(0, 1), Attempt::Execute)),
    row("mkdir", What::Make(at(0))),
    row("mkdirat", What::Make(below(0, 1))),
    row("rmdir", What::Path(at(0), Attempt::Write)),
    row("unlink", What::Path(at(0), Attempt::Write)),
    row("unlinkat", What::Path(below(0, 1), Attempt::Write)),
    row("symlink", What::Make(at(1))),
    row("symlinkat", What::Make(below(1, 2))),
    row("rename", What::Two(at(0), at(1))),
    row("renameat", What::Two(below(0, 1), below(2, 3))),
    row("renameat2", What::Two(below(0, 1), below(2, 3))),
    row("link", What::Two(at(0), at(1))),
    row("linkat", What::Two(below(0, 1), below(2, 3))),
    row("mknod", What::Make(at(0))),
    row("mknodat", What::Make(below(0, 1))),
    row("chmod", What::Path(at(0), Attempt::Write)),
    row("fchmodat", What::Path(below(0, 1), Attempt::Write)),
    row("fchmodat2", What::Path(below(0, 1), Attempt::Write)),
    row("chown", What::Path(at(0), Attempt::Write)),
    row("lchown", What::Path(at(0), Attempt::Write)),
    row("fchownat", What::Path(below(0, 1), Attempt::Write)),
    row("utime", What::Path(at(0), Attempt::Write)),
    row("utimes", What::Path(at(0), Attempt::Write)),
    row("futimesat", What::Path(below(0, 1), Attempt::Write)),
    row("utimensat", What::Path(below(0, 1), Attempt::Write)),
    row("connect", What::Connect),
    row("bind", What::Listen),
    // Calls without an address, as used for streams, do not notify.
    row("sendto", What::Datagram { address: 4, length: 5 }),
    row("sendmsg", What::Message),
    row("sendmmsg", What::Messages),
    // Not the `stat` family: every program calls them for nearly every file, and each notification costs a context
    // switch.
    row("access", What::Access { place: at(0), mode: 1 }),
    row("faccessat", What::Access { place: below(0, 1), mode: 2 }),
    row("faccessat2", What::Access { place: below(0, 1), mode: 2 }),
    row("chdir", What::Ask(at(0), Question::IsUsable)),
    row("readlink", What::Ask(at(0), Question::LeadsWhere)),
    row("readlinkat", What::Ask(below(0, 1), Question::LeadsWhere)),
];

const FAMILIES: [(libc::c_int, &str); 10] = [
    (libc::AF_UNIX, "AF_UNIX"),
    (libc::AF_INET, "AF_INET"),
    (libc::AF_INET6, "AF_INET6"),
    (libc::AF_NETLINK, "AF_NETLINK"),
    (libc::AF_PACKET, "AF_PACKET"),
    (libc::AF_ALG, "AF_ALG"),
    (libc::AF_VSOCK, "AF_VSOCK"),
    (libc::AF_BLUETOOTH, "AF_BLUETOOTH"),
    (libc::AF_XDP, "AF_XDP"),
    (libc::AF_CAN, "AF_CAN"),
];

const DNS_PORT: u16 = 53;
/// The first Landlock version that restricts ports.
const FIRST_WITH_PORTS: u8 = 4;

#[cfg(test)]
mod tests;
