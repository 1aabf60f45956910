//! Processes: splitting one in two, becoming a program, waiting with an account.

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

/// Which of the two a process is after it was split.
#[derive(Debug)]
pub(crate) enum Split {
    Parent(Pid),
    Child,
}

/// What is known of a process that ended, with everything it waited for itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Ended {
    pub(crate) status: c_int,
    pub(crate) cpu: Duration,
    pub(crate) peak_memory: u64,
}

/// Splits this process. Only for one with a single thread, where the child may run ordinary code.
pub(crate) fn fork() -> io::Result<Split> {
    // SAFETY: fork takes nothing. Callers are the jailer and its children, which have one thread each until they fork no more, so that no
    // lock can be held by a thread that does not exist in the child.
    split(unsafe { libc::fork() }.into())
}

/// As [`fork`], with the child in new namespaces, and a handle to the child that stays true when its number is reused.
pub(crate) fn fork_into(namespaces: c_int) -> io::Result<(Split, Option<OwnedFd>)> {
    let mut handle: c_int = -1;
    let flags = namespaces | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: without CLONE_VM and with a null stack this is a fork: the child goes on with a copy of our memory. The
    // kernel writes one integer to `handle`, in the parent. The last two arguments, whose order differs between
    // machines, are not looked at without their flags. One thread exists, as for `fork`.
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
        // SAFETY: the kernel has just opened this descriptor for us, and nobody else knows of it.
        Split::Parent(_) => Some(unsafe { OwnedFd::from_raw_fd(handle) }),
        Split::Child => None,
    };
    Ok((split, handle))
}

/// Tries something in a child of this process, which may have many threads, and lets no other program run.
///
/// `attempt` must do nothing but system calls: in a child of a process with threads nobody may take memory or a lock.
pub(crate) fn try_in_child(attempt: fn() -> io::Result<()>) -> io::Result<()> {
    let mut command = Command::new("/");
    let probe = move || match attempt() {
        // An error ends the child before it becomes a program, and is handed to us.
        Ok(()) => Err(io::Error::from_raw_os_error(DONE)),
        Err(error) => Err(io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO))),
    };
    // SAFETY: `attempt` is a plain function, and its documentation here and at its callers forbids it everything
    // that is not allowed after a fork; making an error of a number takes no memory.
    let outcome = unsafe { command.pre_exec(probe) }.spawn();
    match outcome {
        Err(error) if error.raw_os_error() == Some(DONE) => Ok(()),
        Err(error) => Err(error),
        Ok(mut child) => {
            let _ = child.wait();
            Err(io::Error::other("the child went further than it should"))
        }
    }
}

/// Becomes another program; returns only when that fails.
pub(crate) fn execute(program: &CStr, argv: &[CString], env: &[CString]) -> io::Error {
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: all three are strings that end with a zero, the two lists end with a null pointer, and everything lives
    // until the call returns, which it does only on failure.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Waits for the end of a child.
pub(crate) fn wait_with_account(child: Pid) -> io::Result<Ended> {
    let mut status: c_int = 0;
    // SAFETY: all-zero bytes are a valid `rusage`.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    loop {
        // SAFETY: the kernel writes to `status` and `usage`, which are ours and outlive the call.
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
    Ok(Ended::new(status, &usage))
}

/// What the children used that were waited for, as the account of one that ended so.
pub(crate) fn account_of_children(status: c_int) -> io::Result<Ended> {
    Ok(Ended::new(status, &usage_of(libc::RUSAGE_CHILDREN)?))
}

/// The processor time that this process has used.
pub(crate) fn own_cpu_time() -> io::Result<Duration> {
    Ok(Ended::new(0, &usage_of(libc::RUSAGE_SELF)?).cpu)
}

fn usage_of(whom: c_int) -> io::Result<libc::rusage> {
    // SAFETY: all-zero bytes are a valid `rusage`.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes to `usage`, which is ours and outlives the call.
    if unsafe { libc::getrusage(whom, &raw mut usage) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(usage)
}

/// Kills the process group whose leader this handle is of, also when the leader has ended. An error on kernels before Linux 6.9.
pub(crate) fn kill_group(leader: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: sends a signal and touches no memory; null asks for the usual information about the sender.
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

/// Kills everybody else in a process namespace of which this is the first process. Does nothing in any other process.
pub(crate) fn kill_the_others() {
    if rustix::process::getpid() == Pid::INIT {
        // SAFETY: sends a signal and touches no memory. The first process of a namespace reaches nobody outside.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    }
}

impl Ended {
    fn new(status: c_int, usage: &libc::rusage) -> Self {
        let peak_memory = u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024);
        Self { status, cpu: span(usage.ru_utime) + span(usage.ru_stime), peak_memory }
    }
}

/// Copies memory of another process: as much as can be had without crossing into a page that is not there.
pub(crate) fn read_memory(process: Pid, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let Ok(address) = usize::try_from(address) else { return Err(io::ErrorKind::InvalidInput.into()) };
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: ptr::without_provenance_mut(address), iov_len: into.len() };
    // SAFETY: the kernel writes at most `into.len()` bytes to `into`; the remote address is only ever used in the other
    // process, and one that is not mapped there is answered with an error.
    let count = unsafe {
        libc::process_vm_readv(process.as_raw_nonzero().get(), &raw const local, 1, &raw const remote, 1, 0)
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Ignores a signal. Ignoring the ends of children lets the kernel bury them.
pub(crate) fn ignore(signal: c_int) -> io::Result<()> {
    act(signal, libc::SIG_IGN)
}

/// Gives a signal its default action again.
pub(crate) fn heed(signal: c_int) -> io::Result<()> {
    act(signal, libc::SIG_DFL)
}

fn act(signal: c_int, action: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: callers give one of the two actions that run nothing of ours; each is taken or refused.
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
/// A number that no system call of an attempt answers with.
const DONE: c_int = libc::ECANCELED;
