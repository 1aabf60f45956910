//! The jailer: a small single-threaded process that forks a supervisor for each order.
//!
//! It reads no order itself, so the content of an order cannot affect the next one.

use std::{io, os::fd::OwnedFd, os::unix::net::UnixStream, sync::Arc};

use rustix::process::Signal;

use super::{control_group, passing, seal::Filters, supervisor};
use crate::{
    status::StatusFile,
    sys::{
        self, SocketOption,
        process::{self, Split},
    },
};

/// Becomes the jailer if this process has its name. Call it first in `main`, while there is one thread.
pub fn run_if_jailer() {
    if std::env::args_os().next().is_some_and(|name| name == crate::JAILER_NAME) {
        sys::leave(jailer_main());
    }
}

/// Entry point of the process named [`crate::JAILER_NAME`], before any thread exists. Returns the exit code.
pub fn jailer_main() -> u8 {
    let ready = prepare().and_then(|()| Filters::compile().map_err(io::Error::other));
    match ready {
        Ok(filters) => {
            let filters = Arc::new(filters);
            control_group::sweep();
            // The gateway waits for this sign that the program is a jailer.
            let sent = passing::send_some(rustix::stdio::stdin(), &[0], &[]);
            if sent.is_ok() { serve(&filters) } else { CANNOT_START }
        }
        Err(_) => CANNOT_START,
    }
}

fn prepare() -> io::Result<()> {
    let domain = sys::stdin_socket_option(SocketOption::Domain)?;
    let kind = sys::stdin_socket_option(SocketOption::Kind)?;
    if domain != libc::AF_UNIX || kind != libc::SOCK_SEQPACKET {
        return Err(io::Error::other("descriptor 0 is not a gateway's socket"));
    }
    sys::close_range(FIRST_UNKNOWN, u32::MAX)?;
    if StatusFile::open()?.read()?.threads()? != 1 {
        return Err(io::Error::other("the jailer has more than one thread"));
    }
    sys::reset_signals()?;
    process::ignore(libc::SIGPIPE)?;
    // Signals of a terminal are for the gateway, which ends its commands itself.
    let _ = rustix::process::setsid();
    rustix::process::chdir("/")?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let gateway = sys::stdin_peer_process()?;
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get());
    if parent == Some(gateway) { Ok(()) } else { Err(io::Error::other("the gateway has ended")) }
}

fn serve(filters: &Arc<Filters>) -> u8 {
    // The socket ends when the gateway ends.
    while let Ok(Some(control)) = next_order() {
        // The kernel reaps supervisors; each supervisor restores the default for its own children.
        if process::ignore(libc::SIGCHLD).is_err() {
            return CANNOT_START;
        }
        if let Ok(Split::Child) = process::fork() {
            supervisor::run(&UnixStream::from(control), filters);
            sys::leave(0);
        }
    }
    0
}

/// The connection of the next order; `None` at the end.
fn next_order() -> io::Result<Option<OwnedFd>> {
    loop {
        let mut descriptors = Vec::new();
        let got = passing::receive_some(rustix::stdio::stdin(), &mut [0], &mut descriptors)?;
        match descriptors.pop() {
            Some(control) => return Ok(Some(control)),
            None if got == 0 => return Ok(None),
            None => {}
        }
    }
}

const FIRST_UNKNOWN: u32 = 3;
const CANNOT_START: u8 = 2;
