//! Attacks by native code in a sealed worker: one system call each, made without libc. The tests of the gateway,
//! `cli/tests/compromised`, use this table, too.
#![expect(unsafe_code, reason = "an attacker with native code makes raw system calls")]

use std::ffi::{CStr, c_long};

/// One forbidden action. The arguments are valid but harmless if the filter fails, because the tests also run as
/// root.
pub struct Attack {
    pub name: &'static str,
    number: c_long,
    arguments: [usize; 6],
    entry: Entry,
}

enum Entry {
    Ordinary,
    /// The 32-bit entry of x86_64 kernels.
    #[cfg(target_arch = "x86_64")]
    Interrupt80,
}

impl Attack {
    /// Returns the kernel's result. A sealed worker is killed before it sees it.
    pub fn perform(&self) -> isize {
        match self.entry {
            Entry::Ordinary => raw(self.number, self.arguments),
            #[cfg(target_arch = "x86_64")]
            Entry::Interrupt80 => interrupt80(self.number),
        }
    }
}

/// Makes any system call.
pub fn raw(number: c_long, arguments: [usize; 6]) -> isize {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    // SAFETY: none is claimed: this is the attacker. Callers pass memory that outlives the call; harming this
    // process is the purpose.
    let answer = unsafe { libc::syscall(number, first, second, third, fourth, fifth, sixth) };
    isize::try_from(answer).unwrap()
}

#[cfg(target_arch = "x86_64")]
fn interrupt80(number: c_long) -> isize {
    let answer: isize;
    // SAFETY: none is claimed: this is the attacker. The 32-bit entry takes its number in eax and clobbers r8 to r11.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("rax") number => answer,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    answer
}

/// Writes through an invalid pointer.
pub fn crash() {
    // SAFETY: none is claimed: the process is meant to die of it.
    unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) };
}

/// Waits for one child and returns its raw wait status.
pub fn wait_for(process: i32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: waitpid writes one integer to a local that outlives the call.
    let found = unsafe { libc::waitpid(process, &raw mut status, libc::WNOHANG) };
    (found == process).then_some(status)
}

pub fn all() -> Vec<Attack> {
    let mut attacks = files();
    attacks.extend(network());
    attacks.extend(processes());
    attacks.extend(memory());
    attacks.extend(descriptors());
    attacks.extend(signals());
    attacks.extend(privileges());
    attacks.extend(kernel());
    attacks.extend(side_doors());
    attacks
}

fn files() -> Vec<Attack> {
    vec![
        #[cfg(target_arch = "x86_64")]
        attack("open", libc::SYS_open, &[path(c"/etc/passwd"), 0]),
        attack("openat", libc::SYS_openat, &[HERE, path(c"/etc/passwd"), 0]),
        attack("openat2", libc::SYS_openat2, &[HERE, path(c"/etc/passwd"), OPEN_HOW.as_ptr().addr(), 24]),
        attack("name_to_handle_at", libc::SYS_name_to_handle_at, &[HERE, path(c"/")]),
        attack("open_by_handle_at", libc::SYS_open_by_handle_at, &[HERE]),
        attack("statx", libc::SYS_statx, &[HERE, path(c"/etc/shadow")]),
        attack("newfstatat", libc::SYS_newfstatat, &[HERE, path(c"/etc/shadow")]),
        attack("readlinkat", libc::SYS_readlinkat, &[HERE, path(c"/proc/self/exe")]),
        attack("getdents64", libc::SYS_getdents64, &[0]),
        attack("unlinkat", libc::SYS_unlinkat, &[HERE, path(NOWHERE)]),
        attack("mknodat", libc::SYS_mknodat, &[HERE, path(NOWHERE), 0o20_666, 0x0101]),
        attack("chroot", libc::SYS_chroot, &[path(c"/")]),
        attack("chdir", libc::SYS_chdir, &[path(c"/")]),
        attack("pivot_root", libc::SYS_pivot_root, &[path(NOWHERE), path(NOWHERE)]),
        attack("mount", libc::SYS_mount, &[0, path(NOWHERE), path(c"tmpfs")]),
        attack("umount2", libc::SYS_umount2, &[path(NOWHERE), 2]),
        attack("open_tree", libc::SYS_open_tree, &[HERE, path(c"/"), 1]),
        attack("fsopen", libc::SYS_fsopen, &[path(c"tmpfs")]),
        attack("inotify_init1", libc::SYS_inotify_init1, &[]),
        attack("fanotify_init", libc::SYS_fanotify_init, &[]),
    ]
}

fn network() -> Vec<Attack> {
    let address = INTERNET_LOOPBACK.as_ptr().addr();
    vec![
        attack("socket unix", libc::SYS_socket, &[1, 1]),
        attack("socket inet", libc::SYS_socket, &[2, 1]),
        attack("socket netlink", libc::SYS_socket, &[16, 3]),
        attack("socketpair", libc::SYS_socketpair, &[1, 1, 0, SCRATCH.as_ptr().addr()]),
        attack("connect", libc::SYS_connect, &[0, address, 16]),
        attack("bind", libc::SYS_bind, &[0, address, 16]),
        attack("listen", libc::SYS_listen, &[0, 1]),
        attack("accept4", libc::SYS_accept4, &[0]),
        attack("sendto", libc::SYS_sendto, &[0, address, 1]),
        attack("recvfrom", libc::SYS_recvfrom, &[0, address, 1]),
        attack("sendmsg with a descriptor", libc::SYS_sendmsg, &[0, SCRATCH.as_ptr().addr()]),
        attack("recvmsg for a descriptor", libc::SYS_recvmsg, &[0, SCRATCH.as_ptr().addr()]),
        attack("setsockopt", libc::SYS_setsockopt, &[0, 1, 2]),
        attack("getpeername", libc::SYS_getpeername, &[0]),
        attack("shutdown", libc::SYS_shutdown, &[0, 2]),
    ]
}

fn processes() -> Vec<Attack> {
    vec![
        #[cfg(target_arch = "x86_64")]
        attack("fork", libc::SYS_fork, &[]),
        #[cfg(target_arch = "x86_64")]
        attack("vfork", libc::SYS_vfork, &[]),
        attack("clone", libc::SYS_clone, &[libc::SIGCHLD as usize]),
        attack("clone a thread", libc::SYS_clone, &[CLONE_THREAD_FLAGS]),
        attack("clone3", libc::SYS_clone3, &[SCRATCH.as_ptr().addr(), 64]),
        attack("execve", libc::SYS_execve, &[path(c"/bin/sh")]),
        attack("execveat", libc::SYS_execveat, &[0, path(c""), 0, 0, 0x1000]),
        attack("ptrace attach", libc::SYS_ptrace, &[16, 1]),
        attack("process_vm_readv", libc::SYS_process_vm_readv, &[1, 0, 0, 0, 0]),
        attack("process_vm_writev", libc::SYS_process_vm_writev, &[1, 0, 0, 0, 0]),
        attack("pidfd_open", libc::SYS_pidfd_open, &[1]),
        attack("pidfd_getfd", libc::SYS_pidfd_getfd, &[0]),
        attack("kcmp", libc::SYS_kcmp, &[1, 1]),
        attack("getpid", libc::SYS_getpid, &[]),
        attack("getppid", libc::SYS_getppid, &[]),
        attack("gettid", libc::SYS_gettid, &[]),
        attack("wait4", libc::SYS_wait4, &[usize::MAX]),
        attack("process_madvise another", libc::SYS_process_madvise, &[0, 0, 0, 4]),
        attack("process_madvise cold", libc::SYS_process_madvise, &[PIDFD_SELF, 0, 0, 20]),
        attack("process_mrelease", libc::SYS_process_mrelease, &[0]),
    ]
}

fn memory() -> Vec<Attack> {
    let page = SCRATCH.as_ptr().addr() & !0xfff;
    let fixed_file = (libc::MAP_PRIVATE | libc::MAP_FIXED) as usize;
    vec![
        attack("mmap executable", libc::SYS_mmap, &[0, 4096, 5, 0x22, usize::MAX]),
        attack("mmap writable and executable", libc::SYS_mmap, &[0, 4096, 7, 0x22, usize::MAX]),
        attack("mmap executable only", libc::SYS_mmap, &[0, 4096, 4, 0x22, usize::MAX]),
        attack("mmap shared", libc::SYS_mmap, &[0, 4096, 3, 0x21, usize::MAX]),
        attack("mmap shared validated", libc::SYS_mmap, &[0, 4096, 3, 0x23, usize::MAX]),
        attack("mmap a file", libc::SYS_mmap, &[0, 4096, 1, 0x02, 0]),
        attack("mmap a file like the image", libc::SYS_mmap, &[page, 4096, 3, fixed_file, 0]),
        attack("mmap huge pages", libc::SYS_mmap, &[0, 2 << 20, 3, 0x4_0022, usize::MAX]),
        attack("mmap locked", libc::SYS_mmap, &[0, 4096, 3, 0x2022, usize::MAX]),
        attack("mprotect executable", libc::SYS_mprotect, &[page, 4096, 5]),
        attack("mprotect writable and executable", libc::SYS_mprotect, &[page, 4096, 7]),
        attack("pkey_mprotect", libc::SYS_pkey_mprotect, &[page, 4096, 5, usize::MAX]),
        attack("mremap to a chosen place", libc::SYS_mremap, &[page, 4096, 4096, 3, page]),
        attack("mremap and keep", libc::SYS_mremap, &[page, 4096, 4096, 5]),
        attack("madvise mergeable", libc::SYS_madvise, &[page, 4096, 12]),
        attack("madvise inject error", libc::SYS_madvise, &[page, 4096, 100]),
        attack("remap_file_pages", libc::SYS_remap_file_pages, &[page, 4096]),
        attack("memfd_create", libc::SYS_memfd_create, &[path(c"x")]),
        attack("memfd_secret", SYS_MEMFD_SECRET, &[]),
        attack("mlock", libc::SYS_mlock, &[page, 4096]),
        attack("shmget", libc::SYS_shmget, &[0, 4096, 0o1666]),
        attack("userfaultfd", libc::SYS_userfaultfd, &[1]),
    ]
}

fn descriptors() -> Vec<Attack> {
    let scratch = SCRATCH.as_ptr().addr();
    vec![
        attack("read from stdout", libc::SYS_read, &[1, scratch, 0]),
        attack("read from 3", libc::SYS_read, &[3, scratch, 0]),
        attack("write to stdout", libc::SYS_write, &[1, scratch, 1]),
        attack("write to stderr", libc::SYS_write, &[2, scratch, 1]),
        attack("write to 3", libc::SYS_write, &[3, scratch, 1]),
        attack("readv", libc::SYS_readv, &[0]),
        attack("writev", libc::SYS_writev, &[0]),
        attack("pread64", libc::SYS_pread64, &[0]),
        attack("close", libc::SYS_close, &[0]),
        attack("close_range", libc::SYS_close_range, &[0, 9]),
        attack("dup", libc::SYS_dup, &[0]),
        attack("dup3", libc::SYS_dup3, &[0, 5]),
        attack("fcntl", libc::SYS_fcntl, &[0, 1030, 3]),
        attack("ioctl", libc::SYS_ioctl, &[0, 0x5413]),
        attack("pipe2", libc::SYS_pipe2, &[scratch]),
        attack("epoll_create1", libc::SYS_epoll_create1, &[]),
        attack("eventfd2", libc::SYS_eventfd2, &[]),
        attack("splice", libc::SYS_splice, &[0, 0, 0, 0, 1]),
        attack("sendfile", libc::SYS_sendfile, &[0, 0]),
    ]
}

fn signals() -> Vec<Attack> {
    vec![
        attack("kill init", libc::SYS_kill, &[1, 0]),
        attack("kill everybody", libc::SYS_kill, &[usize::MAX, 0]),
        attack("tkill", libc::SYS_tkill, &[1, 0]),
        attack("tgkill", libc::SYS_tgkill, &[1, 1, 0]),
        attack("pidfd_send_signal", libc::SYS_pidfd_send_signal, &[0, 0]),
        attack("rt_sigaction", libc::SYS_rt_sigaction, &[31, 0, 0, 8]),
        attack("rt_sigprocmask", libc::SYS_rt_sigprocmask, &[0, 0, 0, 8]),
        attack("rt_sigqueueinfo", libc::SYS_rt_sigqueueinfo, &[1, 0]),
        attack("sigaltstack", libc::SYS_sigaltstack, &[]),
        attack("signalfd4", libc::SYS_signalfd4, &[usize::MAX]),
        attack("setitimer", libc::SYS_setitimer, &[0]),
        attack("timer_create", libc::SYS_timer_create, &[0]),
        attack("timerfd_create", libc::SYS_timerfd_create, &[0]),
        attack("futex with priority inheritance", libc::SYS_futex, &[SCRATCH.as_ptr().addr(), 6]),
        attack("futex requeue", libc::SYS_futex, &[SCRATCH.as_ptr().addr(), 3]),
        attack("set_robust_list", libc::SYS_set_robust_list, &[0, 24]),
    ]
}

fn privileges() -> Vec<Attack> {
    vec![
        attack("prctl dumpable", libc::SYS_prctl, &[4, 1]),
        attack("prctl no death signal", libc::SYS_prctl, &[1, 0]),
        attack("seccomp", libc::SYS_seccomp, &[2]),
        attack("setuid", libc::SYS_setuid, &[0]),
        attack("setresuid", libc::SYS_setresuid, &[0, 0, 0]),
        attack("setgroups", libc::SYS_setgroups, &[0]),
        attack("setfsuid", libc::SYS_setfsuid, &[0]),
        attack("getuid", libc::SYS_getuid, &[]),
        attack("capset", libc::SYS_capset, &[]),
        attack("prlimit64", libc::SYS_prlimit64, &[0, 9, SCRATCH.as_ptr().addr()]),
        attack("setrlimit", libc::SYS_setrlimit, &[9, SCRATCH.as_ptr().addr()]),
        attack("setpriority", libc::SYS_setpriority, &[0]),
        attack("sched_setaffinity", libc::SYS_sched_setaffinity, &[0, 8, SCRATCH.as_ptr().addr()]),
        attack("sched_setscheduler", libc::SYS_sched_setscheduler, &[0, 1]),
        attack("personality", libc::SYS_personality, &[0x004_0000]),
        attack("unshare", libc::SYS_unshare, &[libc::CLONE_NEWUSER as usize]),
        attack("setns", libc::SYS_setns, &[0]),
        attack("landlock_create_ruleset", libc::SYS_landlock_create_ruleset, &[0, 0, 1]),
        attack("landlock_restrict_self", libc::SYS_landlock_restrict_self, &[0]),
        #[cfg(target_arch = "x86_64")]
        attack("arch_prctl", libc::SYS_arch_prctl, &[0x1003]),
        #[cfg(target_arch = "x86_64")]
        attack("modify_ldt", libc::SYS_modify_ldt, &[0]),
    ]
}

fn kernel() -> Vec<Attack> {
    vec![
        attack("io_uring_setup", libc::SYS_io_uring_setup, &[8, SCRATCH.as_ptr().addr()]),
        attack("io_setup", libc::SYS_io_setup, &[8, SCRATCH.as_ptr().addr()]),
        attack("bpf", libc::SYS_bpf, &[5]),
        attack("perf_event_open", libc::SYS_perf_event_open, &[SCRATCH.as_ptr().addr()]),
        attack("keyctl", libc::SYS_keyctl, &[0, usize::MAX]),
        attack("add_key", libc::SYS_add_key, &[path(c"user"), path(c"x")]),
        attack("init_module", libc::SYS_init_module, &[]),
        attack("finit_module", libc::SYS_finit_module, &[0]),
        attack("kexec_load", libc::SYS_kexec_load, &[0, 99]),
        attack("reboot", libc::SYS_reboot, &[0xfee1_dead, 0, 0]),
        attack("swapon", libc::SYS_swapon, &[path(NOWHERE)]),
        attack("syslog", libc::SYS_syslog, &[10]),
        attack("sethostname", libc::SYS_sethostname, &[path(c"x"), usize::MAX]),
        attack("clock_settime", libc::SYS_clock_settime, &[99, SCRATCH.as_ptr().addr()]),
        attack("quotactl", libc::SYS_quotactl, &[]),
        attack("acct", libc::SYS_acct, &[path(NOWHERE)]),
        attack("uname", libc::SYS_uname, &[SCRATCH.as_ptr().addr()]),
        attack("sysinfo", libc::SYS_sysinfo, &[SCRATCH.as_ptr().addr()]),
        attack("membarrier", libc::SYS_membarrier, &[0]),
        attack("rseq", libc::SYS_rseq, &[]),
        attack("a call of the future", 900, &[]),
        attack("no call at all", -1, &[]),
    ]
}

/// Other entries, in which the number of an allowed call has another meaning.
fn side_doors() -> Vec<Attack> {
    #[cfg(target_arch = "x86_64")]
    return vec![
        attack("x32 read", X32 | libc::SYS_read, &[0, SCRATCH.as_ptr().addr(), 0]),
        attack("x32 getpid", X32 | libc::SYS_getpid, &[]),
        Attack { entry: Entry::Interrupt80, ..attack("int 0x80 getpid", 20, &[]) },
        // Number 1 is `write` at the 64-bit entry and `exit` at this one.
        Attack { entry: Entry::Interrupt80, ..attack("int 0x80 with an allowed number", 1, &[]) },
    ];
    #[cfg(not(target_arch = "x86_64"))]
    return Vec::new();
}

fn attack(name: &'static str, number: c_long, given: &[usize]) -> Attack {
    let mut arguments = [0; 6];
    arguments[..given.len()].copy_from_slice(given);
    Attack { name, number, arguments, entry: Entry::Ordinary }
}

fn path(path: &'static CStr) -> usize {
    path.as_ptr().addr()
}

const NOWHERE: &CStr = c"/no/such/folder/no/such/file";
pub const HERE: usize = (libc::AT_FDCWD as isize).cast_unsigned();
const PIDFD_SELF: usize = (-10_000_isize).cast_unsigned();
const CLONE_THREAD_FLAGS: usize =
    (libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND | libc::CLONE_THREAD) as usize;
const SYS_MEMFD_SECRET: c_long = 447;
#[cfg(target_arch = "x86_64")]
const X32: c_long = 0x4000_0000;

static OPEN_HOW: [u64; 3] = [0; 3];
static SCRATCH: [u64; 64] = [0; 64];
/// `struct sockaddr_in`: 127.0.0.1, port 80.
static INTERNET_LOOPBACK: [u8; 16] = [2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
