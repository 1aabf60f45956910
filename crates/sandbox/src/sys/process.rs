//! Processes: fork, exec, and wait with resource usage.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_long},
    io, mem,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    os::unix::process::CommandExt,
    process::Command,
    ptr,
    time::Duration,
};

use rustix::process::Pid;

/// The side of a fork that this process is.
#[derive(Debug)]
pub(crate) enum Split {
    Parent(Pid),
    Child,
}

/// Status and resource usage of a process that ended, including the children it waited for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ExitAccount {
    pub(crate) status: c_int,
    pub(crate) cpu: Duration,
    pub(crate) peak_memory: u64,
}

/// Forks this process. Only for single-threaded processes, where the child may run ordinary code.
pub(crate) fn fork() -> io::Result<Split> {
    // SAFETY: fork takes no arguments. Callers are the jailer and its children, which have one thread each while
    // they fork, so no lock can be held by a thread that does not exist in the child.
    split(unsafe { libc::fork() }.into())
}

/// Like [`fork`], with the child in new namespaces. Also returns a pidfd, which stays valid when the process id is
/// reused.
pub(crate) fn fork_into(namespaces: c_int) -> io::Result<(Split, Option<OwnedFd>)> {
    let mut handle: c_int = -1;
    let flags = namespaces | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: without CLONE_VM and with a null stack this is a fork: the child continues with a copy of our memory.
    // The kernel writes one integer to `handle`, in the parent. It ignores the last two arguments, whose order
    // differs between architectures, without their flags. One thread exists, as for `fork`.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_clone,
            c_long::from(flags),
            ptr::null_mut::<libc::c_void>(),
            &raw mut handle,
            0_usize,
            0_usize,
        )
    };
    let split = split(outcome)?;
    let handle = match split {
        // SAFETY: the kernel has just opened this descriptor for us; nothing else owns it.
        Split::Parent(_) => Some(unsafe { OwnedFd::from_raw_fd(handle) }),
        Split::Child => None,
    };
    Ok((split, handle))
}

/// Runs `attempt` in a child of this process, which may have many threads. No other program is run.
///
/// `attempt` must only make system calls: in the forked child of a multi-threaded process, allocating or locking
/// can deadlock.
pub(crate) fn try_in_child(attempt: fn() -> io::Result<()>) -> io::Result<()> {
    let mut command = Command::new("/");
    let probe = move || match attempt() {
        // An error ends the child before exec, and `spawn` returns it to us.
        Ok(()) => Err(io::Error::from_raw_os_error(DONE)),
        Err(error) => Err(io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO))),
    };
    // SAFETY: `attempt` is a plain function. Its documentation here and at its callers forbids everything that is
    // not allowed after a fork; making an error from a number does not allocate.
    let outcome = unsafe { command.pre_exec(probe) }.spawn();
    match outcome {
        Err(error) if error.raw_os_error() == Some(DONE) => Ok(()),
        Err(error) => Err(error),
        Ok(mut child) => {
            let _ = child.wait();
            Err(io::Error::other("the child ran a program, which should be impossible"))
        }
    }
}

/// Replaces this process by another program; returns only on failure.
pub(crate) fn execute(program: &CStr, argv: &[CString], env: &[CString]) -> io::Error {
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: all three are zero-terminated strings, the two lists end with a null pointer, and everything lives
    // until the call returns, which it does only on failure.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Waits for the end of a child and returns its resource usage.
pub(crate) fn wait_with_usage(child: Pid) -> io::Result<ExitAccount> {
    let mut status: c_int = 0;
    // SAFETY: all-zero bytes are a valid `rusage`.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    loop {
        // SAFETY: the kernel writes to `status` and `usage`, which we own and which outlive the call.
        let outcome =
            unsafe { libc::wait4(child.as_raw_nonzero().get(), &raw mut status, 0, &raw mut usage) };
        if outcome >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(ExitAccount::new(status, &usage))
}

/// The resource usage of all children waited for, with the given status.
pub(crate) fn usage_of_children(status: c_int) -> io::Result<ExitAccount> {
    Ok(ExitAccount::new(status, &usage_of(libc::RUSAGE_CHILDREN)?))
}

/// CPU time that this process has used.
pub(crate) fn own_cpu_time() -> io::Result<Duration> {
    Ok(ExitAccount::new(0, &usage_of(libc::RUSAGE_SELF)?).cpu)
}

fn usage_of(whom: c_int) -> io::Result<libc::rusage> {
    // SAFETY: all-zero bytes are a valid `rusage`.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes to `usage`, which we own and which outlives the call.
    if unsafe { libc::getrusage(whom, &raw mut usage) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(usage)
}

/// Kills the process group of this leader, even when the leader has ended. Fails before Linux 6.9.
pub(crate) fn kill_group(leader: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: sends a signal and touches no memory; null requests the default sender information.
    super::done(unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            leader.as_raw_fd(),
            libc::SIGKILL,
            ptr::null::<libc::siginfo_t>(),
            PIDFD_SIGNAL_PROCESS_GROUP,
        )
    })
}

/// Kills all other processes of the PID namespace if this is its first process. Otherwise does nothing.
pub(crate) fn kill_other_processes() {
    if rustix::process::getpid() == Pid::INIT {
        // SAFETY: sends a signal and touches no memory. The first process of a namespace cannot signal processes
        // outside it.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    }
}

impl ExitAccount {
    fn new(status: c_int, usage: &libc::rusage) -> Self {
        let peak_memory = u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024);
        Self { status, cpu: span(usage.ru_utime) + span(usage.ru_stime), peak_memory }
    }
}

/// Copies memory of another process, up to the first page that is not mapped.
pub(crate) fn read_memory(process: Pid, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let Ok(address) = usize::try_from(address) else { return Err(io::ErrorKind::InvalidInput.into()) };
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: ptr::without_provenance_mut(address), iov_len: into.len() };
    // SAFETY: the kernel writes at most `into.len()` bytes to `into`. The remote address is only used in the other
    // process, where an unmapped one yields an error.
    let count = unsafe {
        libc::process_vm_readv(process.as_raw_nonzero().get(), &raw const local, 1, &raw const remote, 1, 0)
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Ignores a signal. Ignoring SIGCHLD makes the kernel reap children.
pub(crate) fn ignore(signal: c_int) -> io::Result<()> {
    act(signal, libc::SIG_IGN)
}

/// Restores the default action of a signal.
pub(crate) fn restore_default(signal: c_int) -> io::Result<()> {
    act(signal, libc::SIG_DFL)
}

fn act(signal: c_int, action: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: callers pass one of the two actions that run no code of ours; the kernel accepts or rejects it.
    let before = unsafe { libc::signal(signal, action) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn split(outcome: c_long) -> io::Result<Split> {
    match outcome {
        0 => Ok(Split::Child),
        ..0 => Err(io::Error::last_os_error()),
        _ => i32::try_from(outcome)
            .ok()
            .and_then(Pid::from_raw)
            .map(Split::Parent)
            .ok_or_else(io::Error::last_os_error),
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

fn span(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

const PIDFD_SIGNAL_PROCESS_GROUP: libc::c_uint = 1 << 2;
/// An error number that no system call of an attempt returns.
const DONE: c_int = libc::ECANCELED;
