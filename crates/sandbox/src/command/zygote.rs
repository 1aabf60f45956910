//! The jailer: one small process with one thread that waits for orders and splits off a supervisor for each.
//!
//! It reads no order itself, so that nothing an order says can harm the next one.

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

/// Becomes the jailer if that is this process's name. Call it first thing in `main`, while there is one thread.
pub fn run_if_jailer() {
    if std::env::args_os().next().is_some_and(|name| name == crate::JAILER_NAME) {
        sys::leave(jailer_main());
    }
}

/// What the binary does when it is called [`crate::JAILER_NAME`], before any thread exists. Answers the exit code.
pub fn jailer_main() -> u8 {
    let ready = prepare().and_then(|()| Filters::compile().map_err(io::Error::other));
    match ready {
        Ok(filters) => {
            let filters = Arc::new(filters);
            control_group::sweep();
            // The gateway waits for a sign that this program knows its name.
            let told = passing::send_some(rustix::stdio::stdin(), &[0], &[]);
            if told.is_ok() { serve(&filters) } else { CANNOT_START }
        }
        Err(_) => CANNOT_START,
    }
}

fn prepare() -> io::Result<()> {
    let domain = sys::stdin_socket_option(SocketOption::Domain)?;
    let kind = sys::stdin_socket_option(SocketOption::Kind)?;
    if domain != libc::AF_UNIX || kind != libc::SOCK_SEQPACKET {
        return Err(io::Error::other("descriptor 0 is no socket of a gateway"));
    }
    sys::close_range(FIRST_UNKNOWN, u32::MAX)?;
    if StatusFile::open()?.read()?.threads()? != 1 {
        return Err(io::Error::other("the jailer has more than one thread"));
    }
    sys::reset_signals()?;
    process::ignore(libc::SIGPIPE)?;
    // A terminal's signals are for the gateway, which ends its commands in its own order.
    let _ = rustix::process::setsid();
    rustix::process::chdir("/")?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let gateway = sys::stdin_peer_process()?;
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get());
    if parent == Some(gateway) { Ok(()) } else { Err(io::Error::other("the gateway has ended")) }
}

fn serve(filters: &Arc<Filters>) -> u8 {
    // The end of the gateway is the end of its socket.
    while let Ok(Some(control)) = next_order() {
        // The kernel buries supervisors; each of them asks for its own children again.
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

/// The conversation that comes with the next order; `None` at the end.
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
