//! System calls without a safe wrapper in a library.
#![expect(unsafe_code, reason = "the only files that talk to the kernel without a library in between")]

pub(crate) mod filter;
pub(crate) mod mounts;
pub(crate) mod process;

use std::{ffi::c_int, io, mem, ptr};

use rustix::thread::UnshareFlags;

/// Ends the process at once, without destructors or flushing. A sealed worker may still make this system call.
pub fn leave(code: u8) -> ! {
    // SAFETY: `_exit` takes an integer, touches no memory of ours and does not return.
    unsafe { libc::_exit(c_int::from(code)) }
}

/// Closes every descriptor from `first` to `last`, inclusive.
///
/// Only for the jail, which owns the whole process: nothing may use these descriptors afterwards.
pub(crate) fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: close_range reads three integers and touches no memory. Callers are the two phases of the worker's
    // jail, whose documentation forbids other owners of descriptors in this range; the jailer before it owns any;
    // and process 1 of a command's jail, which never returns afterwards.
    done(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0_u32) })
}

/// Marks every descriptor from `first` on as close-on-exec.
pub(crate) fn close_on_execute(first: u32) -> io::Result<()> {
    // SAFETY: close_range reads three integers and touches no memory; with this flag it closes nothing now.
    done(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) })
}

/// The seals of an open memory file; `None` if the descriptor is not open.
pub(crate) fn seals(descriptor: c_int) -> io::Result<Option<c_int>> {
    // SAFETY: F_GET_SEALS takes no third argument and returns an integer or sets errno; a descriptor that is not
    // open yields EBADF.
    let seals = unsafe { libc::fcntl(descriptor, libc::F_GET_SEALS) };
    if seals >= 0 {
        return Ok(Some(seals));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EBADF) => Ok(None),
        // EINVAL means "open, but not a memory file".
        Some(libc::EINVAL) => Ok(Some(0)),
        _ => Err(error),
    }
}

/// Sets every signal to its default action and unblocks it.
pub(crate) fn reset_signals() -> io::Result<()> {
    let default = [0_u64; KERNEL_SIGACTION_WORDS];
    for signal in 1..=LAST_SIGNAL {
        // Not libc's function, which reserves two signals for itself; a parent may have left those ignored, too.
        //
        // SAFETY: the kernel reads one `struct sigaction` in its own layout (four words on both supported
        // architectures) from an array that outlives the call. All zero is the default action, no flags, no mask. A
        // null pointer requests no old action. For KILL and STOP the kernel returns EINVAL; they always have the
        // default action.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                ptr::null_mut::<u64>(),
                SIGNAL_SET_BYTES,
            )
        };
    }
    // SAFETY: all-zero bytes are a valid signal set on Linux, and sigemptyset writes only that set.
    let mut none: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: `none` is ours and outlives both calls; sigprocmask only reads it. One thread exists.
    let outcome = unsafe {
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut())
    };
    done(outcome.into())
}

/// Leaves one or more namespaces.
pub(crate) fn unshare(namespace: UnshareFlags) -> io::Result<()> {
    // SAFETY: the contract concerns UnshareFlags::FILES, with which threads no longer share descriptors. It is
    // masked out here, and the jail is entered with one thread.
    unsafe { rustix::thread::unshare_unsafe(namespace.difference(UnshareFlags::FILES)) }.map_err(Into::into)
}

/// Forbids executable memory from now on: new mappings as well as changed protection.
pub(crate) fn refuse_new_executable_memory() -> io::Result<()> {
    // SAFETY: prctl reads five integers here and touches no memory; older kernels answer EINVAL.
    done(unsafe { libc::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0_usize, 0_usize, 0_usize) }.into())
}

/// The Landlock version of the running kernel; `None` if it has none or disables it.
pub(crate) fn landlock_abi() -> Option<u8> {
    // SAFETY: with a null attribute, size 0 and flag VERSION the call reads nothing and returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<libc::c_void>(),
            0_usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    u8::try_from(version).ok().filter(|version| *version > 0)
}

/// An integer option of the socket on descriptor 0.
pub(crate) fn stdin_socket_option(option: SocketOption) -> io::Result<c_int> {
    stdin_option(option as c_int).map(c_int::from_ne_bytes)
}

/// The process that created the socket pair of descriptor 0; 0 if it is not visible from this namespace.
pub(crate) fn stdin_peer_process() -> io::Result<libc::pid_t> {
    // `struct ucred`: process, user and group, four bytes each.
    let [a, b, c, d, ..]: [u8; 12] = stdin_option(libc::SO_PEERCRED)?;
    Ok(libc::pid_t::from_ne_bytes([a, b, c, d]))
}

/// The options that this crate reads as integers.
#[derive(Clone, Copy)]
pub(crate) enum SocketOption {
    Domain = libc::SO_DOMAIN as isize,
    Kind = libc::SO_TYPE as isize,
}

fn stdin_option<const SIZE: usize>(option: c_int) -> io::Result<[u8; SIZE]> {
    let mut bytes = [0; SIZE];
    let mut length = libc::socklen_t::try_from(SIZE).map_err(io::Error::other)?;
    // SAFETY: the kernel writes at most `length` bytes to the buffer, which is that long, and the written length to
    // `length`. Both are locals that outlive the call.
    let outcome = unsafe {
        let into = bytes.as_mut_ptr().cast();
        libc::getsockopt(libc::STDIN_FILENO, libc::SOL_SOCKET, option, into, &raw mut length)
    };
    done(outcome.into())?;
    if usize::try_from(length).is_ok_and(|length| length == SIZE) {
        Ok(bytes)
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

fn done(outcome: libc::c_long) -> io::Result<()> {
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

const LAST_SIGNAL: c_int = 64;
const KERNEL_SIGACTION_WORDS: usize = 4;
const SIGNAL_SET_BYTES: usize = 8;
const LANDLOCK_CREATE_RULESET_VERSION: u32 = 1;
const PR_SET_MDWE: c_int = 65;
const PR_MDWE_REFUSE_EXEC_GAIN: usize = 1;
