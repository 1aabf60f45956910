//! Installs system call filters, and replies to the notifications of a filter.

use std::{
    ffi::c_int,
    io, mem,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

pub(crate) use libc::{seccomp_notif as Notice, sock_filter as Instruction};

/// Installs a filter on the only thread of this process and returns the descriptor on which the kernel notifies.
pub(crate) fn install(program: &[Instruction]) -> io::Result<OwnedFd> {
    let listener = set_filter(program, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)?;
    // SAFETY: the kernel has just opened this descriptor for us; nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(listener) })
}

/// Installs a filter on all threads of this process, or on none.
pub(crate) fn install_on_all_threads(program: &[Instruction]) -> io::Result<()> {
    match set_filter(program, libc::SECCOMP_FILTER_FLAG_TSYNC)? {
        0 => Ok(()),
        thread => Err(io::Error::other(format!("thread {thread} has another filter"))),
    }
}

fn set_filter(program: &[Instruction], flags: libc::c_ulong) -> io::Result<c_int> {
    let length = libc::c_ushort::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies `length` instructions, which outlive the call, and checks them; it writes nothing.
    let outcome =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    match c_int::try_from(outcome) {
        Ok(outcome @ 0..) => Ok(outcome),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs notifier and supervisor in turn on one CPU, which is much faster. Older kernels ignore it.
pub(crate) fn answer_in_turn(listener: BorrowedFd<'_>) {
    // SAFETY: the request takes its flags as a number and touches no memory.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _, SYNC_WAKE_UP) };
}

/// The next notification of a waiting system call.
pub(crate) fn next_notice(listener: BorrowedFd<'_>) -> io::Result<Notice> {
    // SAFETY: all-zero bytes are a valid `seccomp_notif`, and the kernel requires them.
    let mut notice: Notice = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes one `seccomp_notif`. libc takes its layout from the kernel's headers, and it never
    // changes, because newer fields would come with another request number.
    let outcome =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV as _, &raw mut notice) };
    if outcome == 0 { Ok(notice) } else { Err(io::Error::last_os_error()) }
}

/// Reply to a waiting system call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NoticeReply {
    /// The kernel continues the call and applies its own checks.
    Continue,
    Refuse {
        errno: c_int,
    },
}

/// Replies to a call. It is not an error if the calling process ended meanwhile.
pub(crate) fn answer(listener: BorrowedFd<'_>, id: u64, answer: NoticeReply) -> io::Result<()> {
    let mut response = match answer {
        NoticeReply::Continue => libc::seccomp_notif_resp {
            id,
            val: 0,
            error: 0,
            flags: u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).map_err(io::Error::other)?,
        },
        NoticeReply::Refuse { errno } => libc::seccomp_notif_resp { id, val: 0, error: -errno, flags: 0 },
    };
    // SAFETY: the kernel reads one `seccomp_notif_resp`, which we own and which outlives the call.
    let outcome =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND as _, &raw mut response) };
    let error = io::Error::last_os_error();
    if outcome == 0 || error.raw_os_error() == Some(libc::ENOENT) { Ok(()) } else { Err(error) }
}

/// Whether the calling process still waits. If not, its process id may already belong to another process.
pub(crate) fn still_waits(listener: BorrowedFd<'_>, mut id: u64) -> bool {
    // SAFETY: the kernel reads one number, which we own and which outlives the call.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _, &raw mut id) == 0 }
}

const SYNC_WAKE_UP: libc::c_ulong = 1;
